import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's part in a test of revocation: java CuratorRevoker host:port
 *
 * <p>It reads commands from standard input: "revoke NODE" asks the holder by that node to leave, and
 * "hold PATH" takes a revocable mutex, and "release" gives it back. It prints "done" after each, and
 * "asked" when somebody asks it to leave. It ends with its input.
 */
public final class CuratorRevoker {
    public static void main(String[] args) throws Exception {
        try (CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], 20_000, 20_000, new ExponentialBackoffRetry(100, 5))) {
            client.start();
            InterProcessMutex mutex = null;
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
            for (String line; (line = in.readLine()) != null; ) {
                String[] words = line.split(" ");
                switch (words[0]) {
                    case "revoke":
                        Revoker.attemptRevoke(client, words[1]);
                        break;
                    case "hold":
                        mutex = new InterProcessMutex(client, words[1]);
                        mutex.makeRevocable(lock -> System.out.println("asked"));
                        mutex.acquire();
                        break;
                    case "release":
                        mutex.release();
                        break;
                    default:
                        throw new IllegalArgumentException(line);
                }
                System.out.println("done");
            }
        }
    }
}
