package zktest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// loggers are configurations for every logger that some release of ZooKeeper
// brings along: info and above on the console. Logback without one prints
// everything, log4j nothing.
var loggers = map[string]string{
	"simplelogger.properties": `org.slf4j.simpleLogger.showDateTime=true
org.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS
org.slf4j.simpleLogger.showShortLogName=true
`,
	"log4j.properties": `log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{HH:mm:ss.SSS} [%t] %p %c{1} - %m%n
`,
	"logback.xml": `<configuration>
  <appender name="console" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} [%thread] %level %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="console"/></root>
</configuration>
`,
}

// writeLoggers fills the directory that goes first on the class path.
func writeLoggers(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range loggers {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeServer makes server i's directory: its configuration and its identity.
func writeServer(dir string, i int, c realConfig, ports []nodePorts) error {
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "myid"), []byte(strconv.Itoa(i+1)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte(zooCfg(data, i, c, ports)), 0o644)
}

// zooCfg is the text of server i's configuration file.
func zooCfg(data string, i int, c realConfig, ports []nodePorts) string {
	var b strings.Builder
	set := func(key string, value any) { fmt.Fprintf(&b, "%s=%v\n", key, value) }
	// The file is Java properties: a backslash starts an escape.
	set("dataDir", filepath.ToSlash(data))
	set("clientPort", ports[i].client)
	set("clientPortAddress", "127.0.0.1")
	set("maxClientCnxns", 0)
	set("tickTime", c.tick.Milliseconds())
	set("initLimit", 10)
	set("syncLimit", 5)
	set("minSessionTimeout", c.minSession.Milliseconds())
	set("maxSessionTimeout", c.maxSession.Milliseconds())
	set("admin.enableServer", false)
	set("4lw.commands.whitelist", "*")
	if len(ports) > 1 {
		for j, p := range ports {
			set(fmt.Sprintf("server.%d", j+1), fmt.Sprintf("127.0.0.1:%d:%d", p.quorum, p.election))
		}
	}
	if c.secure {
		set("secureClientPort", ports[i].secure)
		set("secureClientPortAddress", "127.0.0.1")
		set("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory")
	}
	for _, p := range c.properties {
		set(p[0], strings.ReplaceAll(p[1], `\`, `\\`))
	}
	return b.String()
}
