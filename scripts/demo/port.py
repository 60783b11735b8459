"""The port that the page is served on, of this machine alone."""

import socket

HOST = "127.0.0.1"


def open_port(port: int) -> socket.socket:
    """Bind a port; 0 is any that is free."""
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((HOST, port))
        taken.listen()  # till then, others could bind it too, and be told the token
    except (OSError, OverflowError) as error:
        taken.close()
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"port {port} cannot be used: {reason}; pass another port=…") from None
    return taken
