"""One broker, put together from its parts; `broker.broker` starts and stops them."""
