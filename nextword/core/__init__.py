"""Names, settings, errors and contracts that every other layer builds on."""
