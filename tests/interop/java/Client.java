// java.net.http before a proxy: see tests/tests/peers/clients.rs for what each line says.
// java -Djdk.net.hosts.file=hosts Client.java PORT HOST http1|upgrade|https BYTES [CERTIFICATE]
//
// Without TLS it speaks HTTP/2 only after an upgrade from HTTP/1.1, which nobody has to grant: `upgrade` asks for it. Within TLS (`https`)
// it offers HTTP/2, and has to get it. It names the app by the URL, so every host has to lead here.

import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.concurrent.CompletableFuture;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class Client {
    static final int PIECE = 64 * 1024;

    static String base;
    static HttpClient client;
    static HttpClient.Version spoken;

    public static void main(String[] args) throws Exception {
        boolean secure = args[2].equals("https");
        base = (secure ? "https://" : "http://") + args[1] + ":" + args[0];
        long size = Long.parseLong(args[3]);
        spoken = secure ? HttpClient.Version.HTTP_2 : HttpClient.Version.HTTP_1_1;
        HttpClient.Builder builder = HttpClient.newBuilder();
        builder.version(args[2].equals("http1") ? HttpClient.Version.HTTP_1_1 : HttpClient.Version.HTTP_2);
        if (secure) {
            builder.sslContext(trusting(Path.of(args[4])));
        }
        client = builder.build();
        body(size);
        System.out.println("body");
        cancel();
        System.out.println("cancel");
    }

    static SSLContext trusting(Path certificate) throws Exception {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        try (InputStream file = Files.newInputStream(certificate)) {
            trusted.setCertificateEntry("ebb", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, factory.getTrustManagers(), null);
        return context;
    }

    static HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create(base + path));
    }

    static HttpRequest post(String path, InputStream body) {
        return request(path).POST(BodyPublishers.ofInputStream(() -> body)).build();
    }

    /** The n-th byte of every body: no piece of it looks like another. */
    static int at(long at) {
        return (int) ((at ^ (at >>> 8)) & 0xff);
    }

    /** So many of them. */
    static class Pattern extends InputStream {
        private final long size;
        private long at;

        Pattern(long size) {
            this.size = size;
        }

        @Override
        public int read() {
            return at == size ? -1 : Client.at(at++);
        }

        @Override
        public int read(byte[] into, int offset, int length) {
            int taken = (int) Math.min(Math.min(length, PIECE), size - at);
            for (int index = 0; index < taken; index += 1) {
                into[offset + index] = (byte) Client.at(at++);
            }
            return taken == 0 && length > 0 ? -1 : taken;
        }
    }

    static void body(long size) throws Exception {
        // It reads nothing before it has sent everything, so the app answers then.
        HttpResponse<InputStream> response = client.send(post("/", new Pattern(size)), BodyHandlers.ofInputStream());
        long seen = 0;
        byte[] piece = new byte[PIECE];
        for (int length; (length = response.body().read(piece)) >= 0;) {
            for (int index = 0; index < length; index += 1) {
                check((piece[index] & 0xff) == at(seen++), "byte " + seen + " is another");
            }
        }
        check(seen == size, seen + " bytes came back");
        check(response.version() == spoken, "it came over " + response.version());
        // This one has trailers, which it shows to nobody; it has to find the end all the same.
        HttpRequest streamed = request("/stream").POST(BodyPublishers.ofString("hello")).build();
        check(client.send(streamed, BodyHandlers.ofString()).body().equals("hello"), "another body came back");
    }

    /** A request whose client goes is gone at the app, and others are served before and after. */
    static void cancel() throws Exception {
        HttpRequest endless = request("/?sleep=600000").GET().build();
        CompletableFuture<HttpResponse<String>> asked = client.sendAsync(endless, BodyHandlers.ofString());
        awaitInFlight("2");
        asked.cancel(true);
        awaitInFlight("1");
    }

    static void awaitInFlight(String number) throws Exception {
        while (true) {
            HttpRequest next = request("/").POST(BodyPublishers.ofString("hello")).build();
            HttpResponse<String> served = client.send(next, BodyHandlers.ofString());
            check(served.body().equals("hello"), served.body());
            if (served.headers().firstValue("x-in-flight").orElse("").equals(number)) {
                return;
            }
            Thread.sleep(10);
        }
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise);
        }
    }
}
