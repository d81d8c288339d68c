"""A model in use: a server that predicts, and a command that watches a stream."""
