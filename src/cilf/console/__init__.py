"""The labelling page: a local web server on a store, and a worker process that detects and learns.

``state`` and ``verbs`` are pure, ``store`` is SQL, ``service`` brings them together without HTTP
(``looking``, ``lessons`` and ``overview`` are its reading, teaching and long view), ``api`` and
``pages`` are thin routes over them, ``work`` is the other process. The server itself
never imports a learner, so it starts at once and stays small.
"""
