"""Families put together from parts: for now mixtures of other models.

    Mixture(models, weights)                      a LanguageModel made of LanguageModels
    tune_weights(logps, ...) -> Tuned             weights that fit held-out log-probabilities best (EM)
    MixtureSettings(runs, weights)                what a saved mixture is
    as_numpy(array), normalise(logp_BV)           distributions of any family as NumPy arrays

Import them from their files: ``nextword.mixtures.mixture``, ``nextword.models.distributions``.
"""
