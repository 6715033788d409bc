import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Locks with Curator, as its input says. Arguments: addresses, the session's milliseconds.
 *
 * <p>Reads {@code acquire NUMBER mutex|read|write PATH MILLIS}, {@code release NUMBER}, {@code held NUMBER}, {@code queue NUMBER}
 * and {@code turns NUMBER MILLIS PATHS...}. Writes {@code NUMBER acquired}, {@code NUMBER timed out},
 * {@code NUMBER released}, {@code NUMBER held true|false}, {@code NUMBER queue NODES...}, {@code NUMBER turns FILE} and
 * {@code NUMBER failed WHY}, and whenever the state of the connection changes, {@code state STATE}. When the input ends, it closes
 * its session and ends.
 */
public final class Peer {
    /** The digits at the end of a node's name. */
    private static final int SEQUENCE = 10;
    private static final int CONNECTS_WITHIN_MS = 10_000;
    private static final int LAST_TURN_WITHIN_MS = 20_000;
    private static final ExponentialBackoffRetry RETRIES = new ExponentialBackoffRetry(100, 10, 2_000);

    /** A lock that a thread of its own waits for and holds, because Curator's locks belong to threads. */
    private static final class Claim extends Thread {
        final String number;
        final InterProcessMutex lock;
        final String path;
        final long millis;
        final CountDownLatch release = new CountDownLatch(1);

        Claim(String number, InterProcessMutex lock, String path, long millis) {
            this.number = number;
            this.lock = lock;
            this.path = path;
            this.millis = millis;
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                if (!lock.acquire(millis, TimeUnit.MILLISECONDS)) {
                    say(number, "timed out");
                    return;
                }
                say(number, "acquired");
                release.await();
                lock.release();
                say(number, "released");
            } catch (Exception | Error error) {
                say(number, "failed " + error);
            }
        }
    }

    /** A thread that takes a lock again and again, and notes when. */
    private static final class Turns implements Callable<List<long[]>> {
        final InterProcessMutex lock;
        final long millis;

        Turns(InterProcessMutex lock, long millis) {
            this.lock = lock;
            this.millis = millis;
        }

        @Override
        public List<long[]> call() throws Exception {
            List<long[]> turns = new ArrayList<>();
            long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
            for (long wanted = System.nanoTime(); wanted < until; wanted = System.nanoTime()) {
                lock.acquire();
                long acquired = System.nanoTime();
                // As in other measured loops, nothing is done meanwhile.
                long leaving = System.nanoTime();
                lock.release();
                turns.add(new long[] {wanted, acquired, leaving, System.nanoTime()});
            }
            return turns;
        }
    }

    public static void main(String[] arguments) throws Exception {
        int session = Integer.parseInt(arguments[1]);
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(arguments[0], session, CONNECTS_WITHIN_MS, RETRIES);
        client.getConnectionStateListenable()
                .addListener((unused, state) -> say("state", state.name().toLowerCase().replace('_', ' ')));
        client.start();
        Map<String, Claim> claims = new HashMap<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            try {
                obey(client, claims, words);
            } catch (Exception error) {
                say(words[1], "failed " + error);
            }
        }
        client.close();
        System.exit(0);
    }

    private static void obey(CuratorFramework client, Map<String, Claim> claims, String[] words) throws Exception {
        String number = words[1];
        switch (words[0]) {
            case "acquire":
                Claim claim = new Claim(number, lock(client, words[2], words[3]), words[3], Long.parseLong(words[4]));
                claims.put(number, claim);
                claim.start();
                break;
            case "release":
                claims.get(number).release.countDown();
                break;
            case "queue":
                // Not the lock's own list, which has only readers or only writers.
                List<String> nodes = client.getChildren().forPath(claims.get(number).path);
                nodes.sort(Comparator.comparing(node -> node.substring(node.length() - SEQUENCE)));
                say(number, "queue " + String.join(" ", nodes));
                break;
            case "held":
                say(number, "held " + claims.get(number).lock.isAcquiredInThisProcess());
                break;
            case "turns":
                List<Turns> threads = new ArrayList<>();
                for (String path : Arrays.asList(words).subList(3, words.length)) {
                    threads.add(new Turns(new InterProcessMutex(client, path), Long.parseLong(words[2])));
                }
                say(number, "turns " + turns(number, threads));
                break;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    /** Lets threads take their turns, and returns the file with a line for each turn. */
    private static String turns(String number, List<Turns> threads) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads.size());
        long atMost = threads.get(0).millis + LAST_TURN_WITHIN_MS;
        List<Future<List<long[]>>> all = pool.invokeAll(threads, atMost, TimeUnit.MILLISECONDS);
        pool.shutdown();
        String file = "turns-" + number;
        try (PrintWriter lines = new PrintWriter(file)) {
            for (int thread = 0; thread < all.size(); thread++) {
                for (long[] turn : all.get(thread).get()) {
                    lines.println(thread + " " + turn[0] + " " + turn[1] + " " + turn[2] + " " + turn[3]);
                }
            }
        }
        return file;
    }

    private static InterProcessMutex lock(CuratorFramework client, String kind, String path) {
        switch (kind) {
            case "mutex":
                return new InterProcessMutex(client, path);
            case "read":
                return new InterProcessReadWriteLock(client, path).readLock();
            case "write":
                return new InterProcessReadWriteLock(client, path).writeLock();
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static synchronized void say(String subject, String what) {
        System.out.println(subject + " " + what.replace('\n', ' '));
        System.out.flush();
    }
}
