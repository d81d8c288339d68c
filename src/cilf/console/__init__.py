"""The labelling page: a local web server on a store, and a worker process.

``state`` and ``verbs`` are pure. ``store`` is SQL. ``service`` brings them together without HTTP;
``window_view``, ``updates`` and ``overview`` add views of a window, changes of the model and the
history of classes. ``api`` and ``pages`` are thin routes. ``jobs`` runs in the worker process. The
server never imports a learner, so it starts at once and stays small.
"""
