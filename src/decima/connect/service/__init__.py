"""Scheduling as a service: the protocol, the server, its sessions, and clients. Needs gRPC."""
