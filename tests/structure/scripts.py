"""Each script says what it is for, and does nothing with an argument that it does not know.

usage: scripts.py PROJECT   names each that is wrong; exit status 1 if there is one
"""
import subprocess
import sys
from pathlib import Path


def ran(script, argument):
    """Exit status, stdout and stderr; a script that goes to work is ended."""
    with subprocess.Popen([script, argument], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            return (*process.communicate(timeout=10), process.returncode)
        except subprocess.TimeoutExpired:
            subprocess.run(["kill", "--", f"-{process.pid}"], check=False)
            return (*process.communicate(), None)


def main():
    scripts = sorted(p for p in Path(sys.argv[1], "script").iterdir() if p.suffix == "")
    faults = [] if scripts else ["there are no scripts"]
    for script in scripts:
        out, err, code = ran(script, "--help")
        if code != 0 or err or len(out) < 50 or out.startswith("#"):
            faults.append(f"{script.name} --help: {code}\n{out}{err}")
        out, err, code = ran(script, "--no-such-argument")
        if code != 2 or out or "--no-such-argument" not in err:
            faults.append(f"{script.name} --no-such-argument: {code}\n{out}{err}")
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
