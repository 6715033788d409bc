//! Where a quorum keeps a lock.

use lock_core::node::QuorumNode;
use lock_core::{Location, LockName};

/// The addresses of all nodes, sorted, which all clients of a deployment share; the key is that at any node.
pub(crate) fn locate<N: QuorumNode>(nodes: &[N], name: &LockName) -> Option<Location> {
    let mut addresses: Vec<_> = nodes.iter().map(QuorumNode::address).collect();
    addresses.sort_unstable();
    let key = nodes.first()?.locate(name)?.key;
    Some(Location { store: format!("redlock://{}", addresses.join(",")), key })
}

#[cfg(test)]
mod tests {
    use lock_core::EventSink;

    use super::*;

    #[derive(Debug)]
    struct Node(&'static str);

    impl QuorumNode for Node {
        fn address(&self) -> &str {
            self.0
        }

        fn locate(&self, name: &LockName) -> Option<Location> {
            Some(Location { store: self.0.to_owned(), key: format!("shop:{name}") })
        }

        fn listen(&self, _: EventSink) {}
    }

    #[test]
    fn the_order_of_the_nodes_does_not_matter() {
        let name = "a".parse().unwrap();
        let location = Location { store: "redlock://a:1,b:1,c:1".to_owned(), key: "shop:a".to_owned() };
        for nodes in [["a:1", "b:1", "c:1"], ["c:1", "a:1", "b:1"]] {
            assert_eq!(locate(&nodes.map(Node), &name), Some(location.clone()));
        }
        assert_eq!(locate::<Node>(&[], &name), None);
    }
}
