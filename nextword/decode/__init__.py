"""From distributions to text: one loop, and several ways to choose tokens.

    generate(model, prompts, settings, tokenizer=None, source=None) -> Iterator[Token]    the only loop
    collect(tokens) -> list[Generated]                whole rows, where no stream is needed
        Token(row, id, logprob, text, reason)             one token as it comes; a row's last has a reason
    Generated(row, ids, logprobs, text, reason, score)
    DecodeSettings(decode="sample", max_tokens=…, …)  every value with its limits; `.seeded()` draws a seed
    Greedy, Sampling (choose.py), Beam (beam.py)      the slot "decode": greedy, sample, beam
    top, best, at                                     peaks.py, the most likely tokens of arrays and tensors
    temperature, top_k, top_p, min_p, typical, draw, uniform               sampling.py, pure functions
    NoRepeat, Banned, MinTokens, Never, Penalty, Repetition, Bias, Forced, limits_of    limits.py
    AtEnd, MaxTokens, StopStrings, stops_of                     limits.py
    TextStream(tokenizer, prompt, stop).push(id), .flush()      text.py

Import them from their files, e.g. ``from nextword.decode.generate import generate``.
"""
