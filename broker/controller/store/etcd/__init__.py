"""The metadata store of a cluster: etcd."""
