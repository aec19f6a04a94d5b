package org.apache.iceberg.rest;

import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.responses.LoadTableResponse;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * Iceberg's own REST catalog over its JDBC catalog, on a free port of 127.0.0.1, which is printed.
 *
 * <p>Arguments are the catalog's properties, NAME=VALUE; those that begin with `vend:` go to whoever
 * loads a table, as a catalog does that gives credentials for it. In Iceberg's package, as what it
 * answers by is known only there.
 */
public final class RestCatalog {
  public static void main(String[] arguments) throws Exception {
    Map<String, String> properties = new HashMap<>();
    Map<String, String> vended = new HashMap<>();
    for (String argument : arguments) {
      int at = argument.indexOf('=');
      String name = argument.substring(0, at);
      boolean isVended = name.startsWith("vend:");
      (isVended ? vended : properties)
          .put(isVended ? name.substring("vend:".length()) : name, argument.substring(at + 1));
    }
    JdbcCatalog catalog = new JdbcCatalog();
    catalog.initialize("tests", properties);
    Server server = new Server();
    ServerConnector connector = new ServerConnector(server);
    connector.setHost("127.0.0.1");
    server.addConnector(connector);
    ServletContextHandler context = new ServletContextHandler();
    context.addServlet(
        new ServletHolder(new RESTCatalogServlet(new Vending(catalog, vended))), "/*");
    server.setHandler(context);
    server.start();
    System.out.println(connector.getLocalPort());
    server.join();
  }

  private static final class Vending extends RESTCatalogAdapter {
    private final Map<String, String> vended;

    Vending(Catalog catalog, Map<String, String> vended) {
      super(catalog);
      this.vended = vended;
    }

    @Override
    public <T extends RESTResponse> T handleRequest(
        Route route, Map<String, String> variables, Object body, Class<T> type) {
      T answer = super.handleRequest(route, variables, body, type);
      if (!vended.isEmpty() && answer instanceof LoadTableResponse) {
        LoadTableResponse table = (LoadTableResponse) answer;
        return type.cast(
            LoadTableResponse.builder()
                .withTableMetadata(table.tableMetadata())
                .addAllConfig(table.config())
                .addAllConfig(vended)
                .build());
      }
      return answer;
    }
  }
}
