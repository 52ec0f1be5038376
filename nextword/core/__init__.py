"""Names, settings, errors and contracts: what every other layer stands on."""
