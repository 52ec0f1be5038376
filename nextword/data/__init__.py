"""Texts from files, and what is known about them before training.

Public functions: ``readers.read`` (a `Reader` of blocks), ``paths.resolve`` and ``paths.same_file``,
``corpora.list_corpora`` / ``corpus_files`` / ``get_corpus``, ``packed.packed`` with ``encode.packed_key``
(ids on disk, cached by content), ``check.check`` and ``check.checking`` (a `report.CheckReport`),
``settings.DataSettings``.
"""
