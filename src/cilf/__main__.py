"""``python -m cilf`` is the command ``cilf``."""

from cilf.cli import main

if __name__ == "__main__":
    main()
