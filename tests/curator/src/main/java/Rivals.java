import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.curator.test.BaseClassForTests;
import org.apache.curator.test.TestingServer;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeTestExecutionCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestDescriptor;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs Curator's own tests of its locks, as they are, and tells somebody else where their servers are, who then wants the same locks.
 *
 * <p>Arguments: {@code CLASS} for all tests of a class, {@code -CLASS#METHOD} for one that is left out.
 *
 * <p>Writes {@code begin CLASS#METHOD ADDRESS} when a test has its server, and {@code end CLASS#METHOD} before it closes it; each time
 * it goes on when it reads a line. Writes what became of each test: {@code passed}, {@code skipped}, {@code excluded} or
 * {@code failed CLASS#METHOD WHY}.
 */
public final class Rivals implements BeforeTestExecutionCallback, AfterTestExecutionCallback {
    private static final String PACKAGE = "org.apache.curator.framework.recipes.locks.";
    private static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));
    private static final PrintStream OUTPUT = System.out;

    public static void main(String[] arguments) {
        // Some of the tests print there.
        System.setOut(System.err);
        Set<String> excluded = Arrays.stream(arguments)
                .filter(argument -> argument.startsWith("-"))
                .map(argument -> argument.substring(1))
                .collect(Collectors.toSet());
        LauncherDiscoveryRequestBuilder request = LauncherDiscoveryRequestBuilder.request()
                .filters((PostDiscoveryFilter) test -> filter(test, excluded))
                .configurationParameter("junit.jupiter.extensions.autodetection.enabled", "true");
        for (String argument : arguments) {
            if (!argument.startsWith("-")) {
                request.selectors(selectClass(PACKAGE + argument));
            }
        }
        LauncherDiscoveryRequest tests = request.build();
        Launcher launcher = LauncherFactory.create();
        launcher.execute(tests, new Told());
        // The tests leave threads behind.
        System.exit(0);
    }

    private static FilterResult filter(TestDescriptor test, Set<String> excluded) {
        String name = test.getSource().flatMap(Rivals::name).orElse("");
        if (test.isTest() && excluded.contains(name)) {
            say("excluded", name, "");
            return FilterResult.excluded("it is left out");
        }
        return FilterResult.included("");
    }

    private static Optional<String> name(TestSource source) {
        if (!(source instanceof MethodSource)) {
            return Optional.empty();
        }
        MethodSource method = (MethodSource) source;
        return Optional.of(method.getJavaClass().getSimpleName() + "#" + method.getMethodName());
    }

    private static synchronized void say(String what, String name, String more) {
        OUTPUT.println((what + " " + name + " " + more.replace('\n', ' ')).trim());
        OUTPUT.flush();
    }

    private static void sayAndWait(String what, ExtensionContext test, String more) throws IOException {
        say(what, test.getRequiredTestClass().getSimpleName() + "#" + test.getRequiredTestMethod().getName(), more);
        if (INPUT.readLine() == null) {
            // Nobody is there any more.
            Runtime.getRuntime().halt(1);
        }
    }

    @Override
    public void beforeTestExecution(ExtensionContext test) throws Exception {
        Field server = BaseClassForTests.class.getDeclaredField("server");
        server.setAccessible(true);
        sayAndWait("begin", test, ((TestingServer) server.get(test.getRequiredTestInstance())).getConnectString());
    }

    @Override
    public void afterTestExecution(ExtensionContext test) throws Exception {
        test.getExecutionException().ifPresent(error -> error.printStackTrace());
        sayAndWait("end", test, "");
    }

    /** Says what became of each test, and of a class that could not run. */
    private static final class Told implements TestExecutionListener {
        @Override
        public void executionSkipped(TestIdentifier test, String reason) {
            say("skipped", called(test), reason);
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            if (result.getStatus() != TestExecutionResult.Status.SUCCESSFUL) {
                say("failed", called(test), result.getThrowable().map(Throwable::toString).orElse(""));
            } else if (test.isTest()) {
                say("passed", called(test), "");
            }
        }

        private static String called(TestIdentifier test) {
            return test.getSource().flatMap(Rivals::name).orElse(test.getDisplayName());
        }
    }
}
