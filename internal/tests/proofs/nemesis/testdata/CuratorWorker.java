import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.data.Stat;

/**
 * Curator under attack: java CuratorWorker servers path worker life seed millis
 *
 * <p>It does what worker_test.go does, with the InterProcessMutex as Curator's documentation shows
 * it: acquire with a limit, release in a finally block, and a ConnectionStateListener that takes
 * SUSPENDED for the end of a hold. The token is the czxid of the lock's node.
 */
public final class CuratorWorker {
    /** A mutex that says which node is its own. */
    private static final class Mutex extends InterProcessMutex {
        Mutex(CuratorFramework client, String path) {
            super(client, path);
        }

        String node() {
            return getLockPath();
        }
    }

    private final int worker;
    private final int life;
    private final long timeout; // ns
    private final Random random;
    private final CuratorFramework client;
    private final Mutex mutex;
    private final AtomicLong suspensions = new AtomicLong();
    private long suspensionsAtHold;
    private int turn;
    private volatile boolean rest;
    private volatile boolean attack;

    private CuratorWorker(String[] args) {
        worker = Integer.parseInt(args[2]);
        life = Integer.parseInt(args[3]);
        random = new Random(Long.parseUnsignedLong(args[4]) * 31 + worker * 1000L + life);
        int millis = Integer.parseInt(args[5]);
        timeout = TimeUnit.MILLISECONDS.toNanos(millis);
        client = CuratorFrameworkFactory.newClient(args[0], millis, millis, new ExponentialBackoffRetry(100, 5));
        client.getConnectionStateListenable().addListener((c, state) -> {
            if (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST) {
                suspensions.incrementAndGet();
            }
        });
        client.start();
        mutex = new Mutex(client, args[1]);
    }

    public static void main(String[] args) throws Exception {
        CuratorWorker w = new CuratorWorker(args);
        Thread t = new Thread(w::run);
        t.setDaemon(true);
        t.start();
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String order; (order = orders.readLine()) != null; ) {
            w.rest |= order.equals("rest"); // it works from the beginning
            w.attack = order.equals("attack");
        }
        w.rest = true;
        t.join(TimeUnit.NANOSECONDS.toMillis(6 * w.timeout));
        w.client.close();
        System.exit(0);
    }

    private void run() {
        try {
            while (!rest) {
                turn++;
                take();
            }
            note("rest", System.nanoTime(), false, 0, "");
        } catch (Exception e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private long patience() {
        if (random.nextInt(8) == 0) {
            return (long) (random.nextDouble() * TimeUnit.MILLISECONDS.toNanos(20));
        }
        return timeout / 2 + (long) (random.nextDouble() * 4 * timeout);
    }

    /** Works, and returns whether to go on. */
    private boolean nap() throws Exception {
        TimeUnit.NANOSECONDS.sleep((long) (random.nextDouble() * TimeUnit.MILLISECONDS.toNanos(10)));
        if (random.nextInt(50) != 0) {
            return true;
        }
        boolean looks = random.nextBoolean();
        for (long end = System.nanoTime() + 3 * timeout; System.nanoTime() < end && attack; ) {
            if (looks && !look()) {
                return false;
            }
            note("long", System.nanoTime(), false, 0, "");
            TimeUnit.MILLISECONDS.sleep(20);
        }
        return true;
    }

    private void take() throws Exception {
        long from = System.nanoTime();
        long before = suspensions.get();
        try {
            if (!mutex.acquire(patience(), TimeUnit.NANOSECONDS)) {
                note("missed", from, false, 0, "timeout");
                return;
            }
        } catch (Exception e) {
            note("missed", from, false, 0, e.toString());
            TimeUnit.MILLISECONDS.sleep(50);
            return;
        }
        suspensionsAtHold = before;
        note("got", from, false, 0, "");
        try {
            work();
        } finally {
            release();
        }
    }

    private void release() throws Exception {
        long from = System.nanoTime();
        String error = "";
        try {
            mutex.release();
        } catch (Exception e) {
            error = e.toString();
        }
        note("free", from, false, 0, error);
    }

    private void work() throws Exception {
        if (!look()) {
            return;
        }
        token();
        if (!look()) {
            return;
        }
        if (!nap()) {
            return;
        }
        if (!look()) {
            return;
        }
        if (nap()) {
            look();
        }
    }

    private boolean look() throws Exception {
        long from = System.nanoTime();
        boolean held = mutex.isAcquiredInThisProcess() && suspensions.get() == suspensionsAtHold;
        note("look", from, held, 0, "");
        return held;
    }

    private void token() throws Exception {
        long from = System.nanoTime();
        long token = 0;
        String error = "";
        try {
            Stat stat = client.checkExists().forPath(mutex.node());
            if (stat == null) {
                error = "no node of this hold is there";
            } else {
                token = stat.getCzxid();
            }
        } catch (Exception e) {
            error = e.toString();
        }
        note("token", from, false, token, error);
    }

    /** Prints an event, which journal_test.go describes. */
    private void note(String what, long from, boolean held, long token, String error) {
        System.out.print(String.format(
                "{\"worker\":%d,\"life\":%d,\"turn\":%d,\"what\":\"%s\",\"from\":%d,\"to\":%d,\"held\":%b,\"token\":%d,"
                        + "\"error\":\"%s\"}\n",
                worker, life, turn, what, from, System.nanoTime(), held, token, error.replaceAll("[^ -~]|[\"\\\\]", " ")));
        System.out.flush();
    }
}
