"""Graph `research`: its nodes and edges.

begin -> supervisor -> planner | searcher... | extractor... | analyzer | reporter -> supervisor
-> stop.

The supervisor sends several searchers and extractors at once; their results meet in the state.
"""

from langgraph.graph import START, StateGraph

from my_agent.research.nodes.analyzer import analyzer
from my_agent.research.nodes.begin import begin
from my_agent.research.nodes.extractor import extractor
from my_agent.research.nodes.planner import planner
from my_agent.research.nodes.reporter import reporter
from my_agent.research.nodes.searcher import searcher
from my_agent.research.nodes.stop import stop
from my_agent.research.state import CrawlTask, Input, SearchTask, State
from my_agent.research.supervisor import supervisor

# More steps than any budget allows: two for each batch of pages.
MOST_STEPS = 10_000

graph = (
    StateGraph(State, input_schema=Input)
    .add_node(begin)
    .add_node(supervisor)
    .add_node(planner)
    .add_node(searcher, input_schema=SearchTask)
    .add_node(extractor, input_schema=CrawlTask)
    .add_node(analyzer)
    .add_node(reporter)
    .add_node(stop)
    .add_edge(START, "begin")
    .add_edge("begin", "supervisor")
    .add_edge("planner", "supervisor")
    .add_edge("searcher", "supervisor")
    .add_edge("extractor", "supervisor")
    .add_edge("analyzer", "supervisor")
    .add_edge("reporter", "supervisor")
    .compile(name="research")
    .with_config(recursion_limit=MOST_STEPS)
)
