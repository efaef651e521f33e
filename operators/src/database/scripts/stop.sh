#!/bin/sh
# SIGTERM would wait for every client to leave; SIGINT ends their sessions and shuts down in order.
kill -INT 1
while kill -0 1 2>/dev/null; do sleep 0.2; done
