"""`heapwright ...`, and `python -m heapwright ...`: becomes the command that lies beside this file."""
import os
import sys


def main():
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "heapwright")
    try:
        os.execv(command, ["heapwright", *sys.argv[1:]])
    except OSError as trouble:
        sys.exit(f"heapwright: {command} cannot be executed: {trouble.strerror}")


if __name__ == "__main__":
    main()
