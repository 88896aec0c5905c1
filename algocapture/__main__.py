"""`python -m algocapture` is the command `algocapture`."""

from algocapture.cli import main

if __name__ == "__main__":
    main()
