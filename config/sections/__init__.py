"""The broker's settings by subject; `config.broker` joins them."""
