"""Runs a command in a terminal of 160 columns and copies what it shows: terminal.py COMMAND [ARGUMENT ...]

SIGTERM ends it with everything that the command has started."""

import fcntl
import os
import pty
import signal
import struct
import sys
import termios

program, terminal = pty.fork()
if program == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
signal.signal(signal.SIGTERM, lambda *_: os.killpg(program, signal.SIGKILL))
size = struct.pack("HHHH", 30, 160, 0, 0)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
try:
    while shown := os.read(terminal, 65536):
        os.write(sys.stdout.fileno(), shown)
except OSError:
    # Linux reports the end of the program as an error of its terminal.
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]))
