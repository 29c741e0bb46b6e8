import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Collection;
import java.util.StringJoiner;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * A candidate of Curator's: java CuratorElection host:port path selector|latch id timeout seconds
 *
 * <p>It prints "leads" when it leads. Each line of standard input is a question or an order: leader,
 * participants, resign. At the end of the input it leaves the election and ends. It ends in any case after so
 * many seconds. The session timeout is in milliseconds.
 */
public final class CuratorElection {
    /** What both recipes have. */
    private interface Candidate {
        Participant leader() throws Exception;

        Collection<Participant> participants() throws Exception;

        void resign() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        int timeout = Integer.parseInt(args[4]);
        endAfter(Long.parseLong(args[5]));
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], timeout, timeout, new ExponentialBackoffRetry(100, 5));
        client.start();
        Candidate candidate = args[2].equals("latch") ? latch(client, args[1], args[3]) : selector(client, args[1], args[3]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            switch (line) {
                case "leader":
                    System.out.println("leader " + candidate.leader().getId());
                    break;
                case "participants":
                    StringJoiner all = new StringJoiner(" ");
                    for (Participant p : candidate.participants()) {
                        all.add(p.getId() + (p.isLeader() ? "*" : ""));
                    }
                    System.out.println("participants " + all);
                    break;
                case "resign":
                    candidate.resign();
                    break;
                default:
                    throw new IllegalArgumentException(line);
            }
        }
        client.close();
        System.exit(0);
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

    private static Candidate selector(CuratorFramework client, String path, String id) {
        CountDownLatch resigned = new CountDownLatch(1);
        LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework c) throws Exception {
                System.out.println("leads");
                resigned.await();
            }
        });
        selector.setId(id);
        selector.start();
        return new Candidate() {
            public Participant leader() throws Exception {
                return selector.getLeader();
            }

            public Collection<Participant> participants() throws Exception {
                return selector.getParticipants();
            }

            public void resign() {
                resigned.countDown();
            }
        };
    }

    private static Candidate latch(CuratorFramework client, String path, String id) throws Exception {
        LeaderLatch latch = new LeaderLatch(client, path, id);
        latch.addListener(new LeaderLatchListener() {
            public void isLeader() {
                System.out.println("leads");
            }

            public void notLeader() {
                System.out.println("leads no more");
            }
        });
        latch.start();
        return new Candidate() {
            public Participant leader() throws Exception {
                return latch.getLeader();
            }

            public Collection<Participant> participants() throws Exception {
                return latch.getParticipants();
            }

            public void resign() throws Exception {
                latch.close();
            }
        };
    }
}
