"""Messages the client library does not know, as JSON in Kafka's form: the library reads them."""
