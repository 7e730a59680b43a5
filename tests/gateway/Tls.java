import java.sql.*;
import java.util.Properties;

/** A JDBC program that looks at the certificate: counts, and leaves in the middle of a large result. */
public class Tls {
    public static void main(String[] told) throws Exception {
        Properties who = new Properties();
        who.put("user", "ann");
        who.put("password", told[1]);
        who.put("sslmode", "verify-full");
        who.put("sslrootcert", told[2]);
        Connection con = DriverManager.getConnection("jdbc:postgresql://localhost:" + told[0] + "/register", who);
        try (ResultSet found = con.createStatement().executeQuery("SELECT count(*) > 0 FROM people")) {
            found.next();
            System.out.println("counted " + found.getBoolean(1));
        }
        con.setAutoCommit(false);
        Statement statement = con.createStatement();
        statement.setFetchSize(100);
        ResultSet found = statement.executeQuery("SELECT a.n FROM numbers a, numbers b");
        for (int row = 0; row < 150; row++) found.next();
        Runtime.getRuntime().halt(0);
    }
}
