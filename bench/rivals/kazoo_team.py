"""kazoo's teams; see team.go for what each command does, and remote.go for how commands and
answers look."""
import gc
import queue
import random
import sys
import threading
import time
import traceback

import kazoo.version
from kazoo.client import KazooClient


class Recorder:
    """What the workers of one command measure."""

    def __init__(self):
        self.mu = threading.Lock()
        self.released = 0  # when the last holder began to give back; 0: never
        self.cycles = []
        self.gaps = []
        self.start = time.monotonic_ns()

    def cycle(self, take, hold):
        asked = time.monotonic_ns()
        take.acquire()
        held = time.monotonic_ns()
        with self.mu:
            if asked < self.released:
                self.gaps.append(held - self.released)
        if hold:
            time.sleep(hold)
        leaving = time.monotonic_ns()
        with self.mu:
            self.released = leaving
        take.release()
        with self.mu:
            self.cycles.append(held - asked + time.monotonic_ns() - leaving)

    def result(self):
        elapsed = time.monotonic_ns() - self.start
        return "%d ,%s ,%s" % (elapsed, ",".join(map(str, self.cycles)), ",".join(map(str, self.gaps)))


class Worker(threading.Thread):
    """A worker is a thread, with a lock that it makes when it first needs one."""

    def __init__(self, make):
        super().__init__(daemon=True)
        self.make = make
        self.made = None
        self.orders = queue.SimpleQueue()
        self.start()

    def run(self):
        for work, done in iter(self.orders.get, None):
            try:
                if self.made is None:
                    self.made = self.make()
                work(self.made)
                done.put(None)
            except Exception as e:
                done.put(e)

    def begin(self, work):
        done = queue.SimpleQueue()
        self.orders.put((work, done))
        return done


def wait(begun):
    for done in begun:
        error = done.get()
        if error is not None:
            raise error


class Own:
    """Another mutex at each use; see mostlyOwn in own.go."""

    def __init__(self, client, path, worker, workers, locks):
        self.client, self.path, self.worker, self.workers, self.locks = client, path, worker, workers, locks
        self.made = {}
        self.next = random.Random(worker)
        self.uses = 0

    def acquire(self):
        i = self.worker * self.locks + self.uses % self.locks
        self.uses += 1
        if self.next.randrange(50) == 0:
            other = (self.worker + 1 + self.next.randrange(self.workers - 1)) % self.workers
            i = other * self.locks + self.next.randrange(self.locks)
        if i not in self.made:
            self.made[i] = self.client.Lock(self.path + "/%d" % i)
        self.held = self.made[i]
        self.held.acquire()

    def release(self):
        self.held.release()


class Keyed:
    """The lock of another key at each use, made for the use; see anyKey in own.go."""

    def __init__(self, client, path, worker, keys):
        self.client, self.path, self.keys, self.next = client, path, keys, random.Random(worker)

    def acquire(self):
        self.held = self.client.Lock(self.path + "/%d" % self.next.randrange(self.keys))
        self.held.acquire()

    def release(self):
        self.held.release()


class Team:
    def __init__(self, kind, servers, path, sessions, workers, leases, apart, locks, every, turns):
        self.locks, self.every, self.turns = int(locks), int(every), int(turns)
        servers = servers.split(",")
        self.clients = [KazooClient(hosts=servers[i % len(servers)], timeout=30) for i in range(int(sessions))]
        for client in self.clients:
            client.start(timeout=30)
        self.workers = [
            Worker(self.maker(kind, i, path + "/%d" % i if apart == "true" else path, int(leases)))
            for i in range(int(workers))
        ]

    def maker(self, kind, i, path, leases):
        """A function that makes a pair of what to write with and what to read with."""
        client = self.clients[i % len(self.clients)]

        def make():
            if kind == "mutex":
                lock = client.Lock(path)
                return lock, lock
            if kind == "rw":
                return client.WriteLock(path), client.ReadLock(path)
            if kind == "semaphore":
                semaphore = client.Semaphore(path, max_leases=leases)
                return semaphore, semaphore
            if kind == "own":
                many = Own(client, path, i, len(self.workers), self.locks)
                return many, many
            if kind == "keyed":
                any_key = Keyed(client, path, i, self.locks)
                return any_key, any_key
            raise ValueError(kind)

        return make

    def writes(self, worker, cycle):
        return self.every == 0 or (worker * self.every // len(self.workers) + cycle) % self.every == 0

    def cycles(self, n, micros):
        r = Recorder()
        hold = int(micros) / 1e6
        if self.turns:
            for _ in range(0, int(n), self.turns):
                for i in range(len(self.workers) * self.turns):
                    wait([self.workers[i // self.turns].begin(lambda pair: r.cycle(pair[0], hold))])
            return r.result()

        def work(worker):
            def cycles(pair):
                for k in range(int(n)):
                    r.cycle(pair[0] if self.writes(worker, k) else pair[1], hold)

            return cycles

        wait([w.begin(work(i)) for i, w in enumerate(self.workers)])
        return r.result()

    def hold(self):
        wait([self.workers[0].begin(lambda pair: pair[0].acquire())])

    def drop(self):
        wait([self.workers[0].begin(lambda pair: pair[0].release())])

    def tries(self, n):
        r = Recorder()

        def work(pair):
            for _ in range(int(n)):
                began = time.monotonic_ns()
                if pair[0].acquire(blocking=False):
                    raise RuntimeError("got what another holds")
                r.cycles.append(time.monotonic_ns() - began)

        wait([self.workers[1].begin(work)])
        return r.result()

    def queue(self):
        self.out = Recorder()
        self.queued = [w.begin(lambda pair: self.out.cycle(pair[0], 0)) for w in self.workers[1:]]

    def drain(self):
        self.out.start = time.monotonic_ns()
        self.drop()
        wait(self.queued)
        return self.out.result()

    def holdall(self):
        for w in self.workers:
            wait([w.begin(lambda pair: pair[0].acquire())])

    def dropall(self):
        wait([w.begin(lambda pair: pair[0].release()) for w in self.workers])

    def memory(self):
        gc.collect()
        with open("/proc/self/status") as f:
            for line in f:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        raise RuntimeError("no VmRSS")

    def processor(self):
        return time.process_time_ns()

    def close(self):
        for worker in self.workers:
            worker.orders.put(None)
        for client in self.clients:
            client.stop()
            client.close()


team = None
for line in sys.stdin:
    command, *words = line.split()
    try:
        if command == "open":
            team, answer = Team(*words), None
        elif command == "version":
            answer = kazoo.version.__version__ + " " + sys.version.split()[0]
        else:
            answer = getattr(team, {"try": "tries"}.get(command, command))(*words)
        print("ok", "" if answer is None else answer, flush=True)
    except Exception as e:
        traceback.print_exc()
        print("error", repr(e).replace("\n", " "), flush=True)
