import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryForever;

/**
 * A client of Curator's that goes through an outage: java CuratorDefects host:port path mutex|latch timeout seconds
 *
 * <p>It asks for a mutex or for the leadership. It prints "inside" when it has that, "outside" when the latch says
 * that it has it no more, and the states of its connection. It ends at the end of its input, or after so many seconds.
 * The session timeout is in milliseconds.
 */
public final class CuratorDefects {
    public static void main(String[] args) throws Exception {
        int timeout = Integer.parseInt(args[3]);
        endAfter(Long.parseLong(args[4]));
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], timeout, timeout, new RetryForever(200));
        if (args[2].equals("latch")) {
            LeaderLatch latch = new LeaderLatch(client, args[1], "java");
            latch.addListener(new LeaderLatchListener() {
                public void isLeader() {
                    System.out.println("inside");
                }

                public void notLeader() {
                    System.out.println("outside");
                }
            });
            client.start();
            latch.start();
        } else {
            client.start();
            InterProcessMutex mutex = new InterProcessMutex(client, args[1]);
            Thread waiter = new Thread(() -> {
                try {
                    mutex.acquire();
                    System.out.println("inside");
                } catch (Exception e) {
                    e.printStackTrace();
                }
            });
            waiter.setDaemon(true);
            waiter.start();
        }
        // It comes after the latch's own, which has done its part when this prints.
        client.getConnectionStateListenable().addListener((c, state) -> System.out.println(state));
        while (System.in.read() >= 0) {
            // until the end
        }
        Runtime.getRuntime().halt(0);
    }

    private static void endAfter(long seconds) {
        Thread t = new Thread(() -> {
            try {
                TimeUnit.SECONDS.sleep(seconds);
            } catch (InterruptedException e) {
                // then at once
            }
            System.err.println("not done after " + seconds + "s");
            Runtime.getRuntime().halt(3);
        });
        t.setDaemon(true);
        t.start();
    }
}
