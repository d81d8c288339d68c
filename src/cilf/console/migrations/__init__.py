"""The migrations of the database, in Alembic's form: each leads from one format to the next.

A migration is never changed after a release. It uses its own copies of names and tables, so that it
does the same whatever the rest of the console has become. There is no way down: the backup that is
written before an upgrade is the way back.
"""
