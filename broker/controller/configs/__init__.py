"""Dynamic configs of topics, brokers and groups: values, descriptions, requests."""
