"""Times LocalClient.cmd(ID, "test.ping") of one client that is kept. Prints the times in milliseconds as JSON.

Usage: local_client.py CONF ID RUNS
"""

import json
import sys
import time

import salt.client

conf, minion, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
client = salt.client.LocalClient(conf)
times = []
# The first one imports what the client needs.
for run in range(runs + 1):
    began = time.perf_counter()
    returned = client.cmd(minion, "test.ping")
    took = (time.perf_counter() - began) * 1000
    assert returned == {minion: True}, returned
    if run:
        times.append(took)
print(json.dumps(times))
