"""Numbers: what a model says about a text, and what can be done with that.

    evaluate(model, tokenizer, blocks) -> Report                                     perplexity.py, report.py
    signature(model, tokenizer) -> str                                               signature.py
    score_lines(model, tokenizer, blocks, *, tokens=False, log10=False, begin=True, end=True)
        -> Iterator[LineScore(line, text, logprob, count, unknown, log10, tokens)]   lines.py
    line_batches(model, tokenizer, blocks, begin=True, end=True) -> Iterator[LineBatch]     arrays, bulk speed
    compress(model, tokenizer, data, run_hash) -> bytes                              compress.py
    decompress(model, tokenizer, data, run_hash, source="") -> bytes
    compressing(...), decompressing(...) -> Iterator[Event]                          the same with progress
    filter_lines(scorer, source, output, settings) -> Iterator[Event], last Done(Filtered)     filter.py
        Scorer(model, tokenizer, against=(model2, tokenizer2) | None, identity="hash of the runs")
        FilterSettings(keep="best|worst|head:P|middle:P|tail:P|below:X"), Rule.parse(text)     rules.py
    read_nbest(lines, source) -> NBest, read_references(lines, source) -> {id: text}           nbest.py
    rescore(model, tokenizer, nbest, weights=None, references=None)
        -> Rescored(weights, order, lm, combined, tuned; .lines())                             rescore.py
    word_errors(reference, hypotheses) -> int64 array                                          errorrate.py

Import them from their files, e.g. ``from nextword.evaluation.lm.perplexity import evaluate``.
"""
