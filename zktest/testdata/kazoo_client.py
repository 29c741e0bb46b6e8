"""What kazoo needs of a server: python3 kazoo_client.py host:port"""
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NoNodeError, NodeExistsError
from kazoo.security import make_digest_acl

hosts = sys.argv[1]


def client():
    c = KazooClient(hosts=hosts, timeout=10)
    c.start(timeout=20)
    return c


def raises(error, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except error:
        return
    raise AssertionError("%s: no %s" % (call, error))


a, b = client(), client()

# Nodes.
a.ensure_path("/kazoo/tree")
assert a.create("/kazoo/tree/n", b"one") == "/kazoo/tree/n"
raises(NodeExistsError, b.create, "/kazoo/tree/n")
data, stat = b.get("/kazoo/tree/n")
assert data == b"one" and stat.version == 0, (data, stat)
a.set("/kazoo/tree/n", b"two", version=0)
raises(BadVersionError, a.set, "/kazoo/tree/n", b"three", version=0)
raises(NoNodeError, a.get, "/kazoo/none")
version = a.server_version()
assert version[0] == 3 and version >= (3, 8), version
first = a.create("/kazoo/tree/s-", ephemeral=True, sequence=True)
path, stat = a.create("/kazoo/tree/s-", ephemeral=True, sequence=True, include_data=True)
assert first.endswith("s-0000000001") and path.endswith("s-0000000002"), (first, path)
assert stat.owner_session_id == a.client_id[0], stat
assert sorted(b.get_children("/kazoo/tree")) == ["n", "s-0000000001", "s-0000000002"]
results = a.transaction()
results.create("/kazoo/tree/t")
results.check("/kazoo/tree/n", version=1)
results.delete("/kazoo/tree/t")
results.set_data("/kazoo/tree/n", b"four", version=1)
committed = results.commit()
assert len(committed) == 4 and all(not isinstance(r, Exception) for r in committed), committed
with a.transaction() as half:
    half.create("/kazoo/tree/t")
    half.check("/kazoo/tree/n", version=1)
assert b.exists("/kazoo/tree/t") is None, "half of a transaction"
assert a.sync("/kazoo") == "/kazoo"
acl = [make_digest_acl("user", "password", all=True)]
a.create("/kazoo/private", b"", acl=acl)
b.add_auth("digest", "user:password")
b.get("/kazoo/private")
assert b.get_acls("/kazoo/private")[0] == acl

# Watches.
seen, changed = [], threading.Event()


@b.DataWatch("/kazoo/tree/n")
def on_data(data, stat):
    seen.append(data)
    if data == b"three":
        changed.set()


a.set("/kazoo/tree/n", b"three")
assert changed.wait(20), seen

gone = threading.Event()


@b.ChildrenWatch("/kazoo/tree")
def on_children(children):
    if children == ["n"]:
        gone.set()


a.stop()
a.close()
assert gone.wait(20), "ephemeral nodes outlive their session"

# Lock.
a = client()
holders, most, guard = [], [], threading.Lock()


def work(c, recipe):
    for _ in range(5):
        with recipe:
            with guard:
                holders.append(c)
                most.append(len(holders))
            with guard:
                holders.remove(c)


def contend(recipes):
    threads = [threading.Thread(target=work, args=r) for r in recipes]
    [t.start() for t in threads]
    [t.join(30) for t in threads]
    assert not any(t.is_alive() for t in threads), "a thread hangs"


contend([(c, c.Lock("/kazoo/lock", str(i))) for i, c in enumerate((a, b, a))])
assert max(most) == 1 and len(most) == 15, most
most.clear()
contend([(c, c.Semaphore("/kazoo/semaphore", str(i), max_leases=2)) for i, c in enumerate((a, b, a))])
assert max(most) <= 2 and len(most) == 15, most

for c in (a, b):
    c.stop()
    c.close()
print("kazoo is content")
