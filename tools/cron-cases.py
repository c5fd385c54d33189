"""Writes schedule/tests/data/cron.txt: random cron expressions, each with a time and what croniter says comes next.

Run it by the Python of stock Salt (`target/venv/salt-3008/bin/python tools/cron-cases.py`), whose croniter is the judge.
"""

import datetime
import pathlib
import random

import croniter

COUNT = 10_000
EPOCH = datetime.datetime(2026, 1, 1)
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()


def field(r, low, high, names=None):
    def value():
        n = r.randint(low, high)
        if names and r.random() < 0.3:
            return names[(n - low) % len(names)]
        return str(n)

    def part():
        kind = r.random()
        if kind < 0.45:
            return value()
        if kind < 0.75:
            a, b = sorted((r.randint(low, high), r.randint(low, high)))
            return f"{a}-{b}" if r.random() < 0.7 else f"{a}-{b}/{r.randint(1, 9)}"
        return f"*/{r.randint(1, max(2, (high - low) // 2))}"

    if r.random() < 0.35:
        return "*"
    return ",".join(part() for _ in range(r.choice((1, 1, 1, 2, 3))))


def expression(r):
    if r.random() < 0.02:
        return r.choice(("@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@annually", "@midnight"))
    day = "L" if r.random() < 0.02 else field(r, 1, 31)
    weekday = field(r, 0, 7, DAYS + ["sun"])
    if r.random() < 0.02:
        weekday = f"{r.randint(0, 6)}#{r.randint(1, 4)}"
    fields = [field(r, 0, 59), field(r, 0, 23), day, field(r, 1, 12, MONTHS), weekday]
    if r.random() < 0.1:
        fields.append(field(r, 0, 59))
    if r.random() < 0.03:  # what is none
        fields[r.randrange(len(fields))] = r.choice(("61", "-1", "x", "5-", "*/0", "1,,2", "1-2-3", "99"))
    return " ".join(fields)


def main():
    r = random.Random(19)
    lines = []
    while len(lines) < COUNT:
        text = expression(r)
        start = EPOCH + datetime.timedelta(seconds=r.randrange(0, 3 * 366 * 86_400))
        try:
            found = croniter.croniter(text, start).get_next(datetime.datetime)
            answer = str(int((found - EPOCH).total_seconds()))
        except (ValueError, KeyError) as error:
            answer = "never" if "find" in str(error) else "wrong"
        lines.append(f"{text}\t{int((start - EPOCH).total_seconds())}\t{answer}\n")
    path = pathlib.Path(__file__).parent.parent / "schedule/tests/data/cron.txt"
    path.write_text("".join(lines))


main()
