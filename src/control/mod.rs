//! The control path: framing, handshake and the session state machines of coordinator and server.
