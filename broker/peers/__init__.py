"""Connections to other brokers: requests of ours, answered by a peer.

    Peers                 one of a broker
      PeerConnection      one of a peer and a use ("control", "fetch-0", ...), pipelined
        Connector         makes the stream; `broker.network.connector`
        FrameReader       finds answers in it

Where a peer listens is the image's word: the endpoint of `inter.broker.listener.name`, and the
broker epoch, which names a life of its process. A connection ends when either changes.
"""
