export default () => { throw new Error('weval is not installed'); };
