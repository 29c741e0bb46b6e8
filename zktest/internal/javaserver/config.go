package javaserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// loggers holds a configuration for each logger that some release of ZooKeeper comes with. All print level info and
// above to the console. Without a configuration, Logback would print everything and log4j nothing.
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

// Config is the configuration that all servers of an ensemble share.
type Config struct {
	Tick           time.Duration
	ContainerCheck time.Duration
	MinSession     time.Duration
	MaxSession     time.Duration
	Secure         bool // a second port, for TLS
	Observers      int  // the last servers, which have no vote
	Properties     [][2]string
	Environ        []string // of the processes, besides that of this one
}

// WriteLoggers writes the loggers' configurations to a directory, which goes first on the class path.
func WriteLoggers(dir string) error {
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

// writeServer writes server i's directory: its configuration file and its id.
func writeServer(dir string, i int, c Config, ports []Ports) error {
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "myid"), []byte(strconv.Itoa(i+1)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte(zooCfg(data, i, c, ports)), 0o644)
}

// zooCfg returns the text of server i's configuration file.
func zooCfg(data string, i int, c Config, ports []Ports) string {
	var b strings.Builder
	set := func(key string, value any) { fmt.Fprintf(&b, "%s=%v\n", key, value) }
	// The file is in the format of Java properties, where a backslash starts an escape.
	set("dataDir", filepath.ToSlash(data))
	set("clientPort", ports[i].Client)
	set("clientPortAddress", "127.0.0.1")
	set("maxClientCnxns", 0)
	set("tickTime", c.Tick.Milliseconds())
	set("initLimit", 10)
	set("syncLimit", 5)
	set("minSessionTimeout", c.MinSession.Milliseconds())
	set("maxSessionTimeout", c.MaxSession.Milliseconds())
	set("admin.enableServer", false)
	set("4lw.commands.whitelist", "*")
	if len(ports) > 1 {
		for j, p := range ports {
			member := fmt.Sprintf("127.0.0.1:%d:%d:%s", p.Quorum, p.Election, c.role(j, len(ports)))
			if slices.Contains(c.Properties, [2]string{"reconfigEnabled", "true"}) {
				member += fmt.Sprintf(";127.0.0.1:%d", p.Client) // which the others know only from here
			}
			set(fmt.Sprintf("server.%d", j+1), member)
		}
		set("peerType", c.role(i, len(ports)))
	}
	if c.Secure {
		set("secureClientPort", ports[i].Secure)
		set("secureClientPortAddress", "127.0.0.1")
		set("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory")
	}
	for _, p := range c.Properties {
		set(p[0], strings.ReplaceAll(p[1], `\`, `\\`))
	}
	return b.String()
}

// role returns what server j of n is for ZooKeeper. The observers are the last servers.
func (c Config) role(j, n int) string {
	if j >= n-c.Observers {
		return "observer"
	}
	return "participant"
}
