"""Pictures of the inside: what a model does with a text, as arrays, and drawn.

    Subject(name, model, tokenizer, text)         what is inspected                                subject.py
    ProbeSettings                                 its settings                                    settings.py
    ProbeResult(arrays, names, parts)             what was found: prints, saves, shows itself       result.py
    fitting(subject), look(what, subject, …)      which probes fit a model, and one look       selection.py

The slot "probe" of the catalog names the probes: gradients, depth, gates, eigenvalues, attention, embeddings,
units, linear, surprise, evidence, beam, alignment. Each is a class of the shape `selection.Probe` in a file
of its own. Files that need torch (passes, distances, gate_values, maps) are imported only for a network, so
that count models do without it. A probe only reads: a model gives the same numbers before and after.
"""
