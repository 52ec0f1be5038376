"""Bytes and strings to ids and back.

Public functions: ``fit.fit_tokenizer``, ``fit.tokenizer_from_file``, ``fit.check_tokenizer``,
``fit.default_unit``, ``fit.vocabulary_note``, ``files.load_tokenizer``, ``compare.compare``,
``words.WordTokenizer.fit_encode`` / ``.from_words``, ``vocab.escape`` / ``unescape``,
``settings.TextSettings``. Every tokenizer implements ``core.contracts.Tokenizer`` and, in addition,
``can_code(data)``, ``split(data)`` and ``joiner()`` (for the compressor).
"""
