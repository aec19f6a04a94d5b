"""The classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""
