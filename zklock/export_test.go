package zklock

// KeysInUse returns how many keys a Keyed has not forgotten.
func KeysInUse(k *Keyed) int { return k.keys.Len() }
