"""Delivery of records to share groups: acquisition, acknowledgement, redelivery."""
