;;; contexture-manual-tests.el --- The documents against the package  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the manual says of keys, options, commands behind a slash, messages,
;; tools and files is compared with what is; its examples are run; links
;; lead somewhere; and sentences are short.

;;; Code:

(require 'help-mode)
(require 'info)
(require 'contexture-test-helper)
(require 'contexture-menu)
(require 'contexture-conversation)
(require 'contexture-tools)
(load (expand-file-name "scripts/reference.el" contexture-test-root) nil t)
(contexture-reference-load)

(defvar contexture-manual-tests--file
  (expand-file-name "docs/contexture.texi" contexture-test-root)
  "The manual.")

(defmacro contexture-manual-tests--in (&rest body)
  "Run BODY in a buffer with the manual."
  (declare (indent 0) (debug t))
  `(with-temp-buffer
     (insert-file-contents contexture-manual-tests--file)
     (goto-char (point-min))
     ,@body))

(defun contexture-manual-tests--all (regexp &optional group)
  "Return each match of REGEXP in the manual, or of its GROUP, in order."
  (contexture-manual-tests--in
    (let ((case-fold-search nil))
      (cl-loop while (re-search-forward regexp nil t) collect (match-string (or group 0))))))

(defun contexture-manual-tests--nodes ()
  "Return the nodes of the manual and its reference, in order, without the indexes."
  (let ((regexp "^@node \\(.*\\)"))
    (append (cl-remove-if (lambda (node) (string-suffix-p " index" node))
                          (contexture-manual-tests--all regexp 1))
            (let ((contexture-manual-tests--file contexture-reference-file))
              (contexture-manual-tests--all regexp 1)))))

(defun contexture-manual-tests--between (begin end)
  "Return the text of the manual from the line BEGIN to the next line END."
  (contexture-manual-tests--in
    (search-forward (concat "\n" begin "\n"))
    (let ((beg (point)))
      (search-forward (concat "\n" end "\n"))
      (buffer-substring beg (match-beginning 0)))))

(defun contexture-manual-tests--plain (text)
  "Return TEXT of Texinfo as what stands for itself there."
  (replace-regexp-in-string "@\\([@{}]\\)" "\\1" text))

;;;; Keys

(defun contexture-manual-tests--entries ()
  "Return (MAP KEY COMMAND) for each entry of the manual with a key.
MAP is the symbol of the keymap that the last comment before it names."
  (contexture-manual-tests--in
    (let ((map 'contexture-command-map) entries)
      (while (re-search-forward
              "^@c map: \\(.*\\)$\\|^@cmdx?{\\(.*\\), \\([a-z-]+\\)}$\\|^@\\(?:node\\)" nil t)
        (cond ((match-string 1) (setq map (intern (match-string 1))))
              ((match-string 2)
               (push (list map (contexture-manual-tests--plain (match-string 2))
                           (intern (match-string 3)))
                     entries))
              (t (setq map 'contexture-command-map))))
      (nreverse entries))))

(defun contexture-manual-tests--binding (map key)
  "Return the command of KEY, a description, in MAP, a symbol.
Keys of the map of all commands begin with the example of a prefix."
  (let ((keys (append (kbd key) nil)))
    (when (eq map 'contexture-command-map)
      (should (equal (seq-take keys 2) (append (kbd "C-c x") nil)))
      (setq keys (nthcdr 2 keys)))
    (lookup-key (symbol-value map) (vconcat keys))))

(ert-deftest contexture-manual-keys-are-those-of-the-keymaps ()
  (let ((entries (contexture-manual-tests--entries)))
    (should (> (length entries) 150))
    (pcase-dolist (`(,map ,key ,command) entries)
      (ert-info ((format "%s: %s is %s" map key command))
        (should (eq (contexture-manual-tests--binding map key) command))))))

(ert-deftest contexture-manual-has-an-entry-for-each-key-after-the-prefix ()
  (let ((entries (contexture-manual-tests--entries)))
    (pcase-dolist (`(,key . ,command) (contexture-reference-of contexture-command-map))
      (ert-info ((format "C-c x %s is %s" key command))
        (should (member (list 'contexture-command-map (concat "C-c x " key) command) entries))))))

(ert-deftest contexture-manual-has-an-entry-for-each-command-of-a-keymap ()
  "A command may have several keys in a keymap, of which the entry shows one."
  (let ((text (contexture-manual-tests--in
                (buffer-string))))
    (pcase-dolist (`(,map ,_) contexture-reference-maps)
      (pcase-dolist (`(,key . ,command) (contexture-reference-of (symbol-value map)))
        (ert-info ((format "%s: %s is %s" map key command))
          (when (and (string-prefix-p "contexture-" (symbol-name command)) (commandp command))
            (should (string-match-p
                     (format "^@cmdx?{.*, %s}$\\|(@code{%s})\\|@code{%s}[,.)]" command command command)
                     text))))))))

(ert-deftest contexture-manual-has-a-table-of-each-keymap ()
  (let (left)
    (mapatoms (lambda (symbol)
                (when (and (string-match-p "\\`contexture-.*-map\\'" (symbol-name symbol))
                           (boundp symbol) (keymapp (symbol-value symbol))
                           (contexture-reference-of (symbol-value symbol))
                           (not (memq symbol contexture-reference-same))
                           (not (assq symbol contexture-reference-maps)))
                  (push symbol left))))
    (should-not left)))

(ert-deftest contexture-manual-reference-is-fresh ()
  "Its keys, options, faces and functions are those of the package."
  (ert-info ("`make docs' writes it")
    (let ((is-fresh (equal (contexture-reference-written) (contexture-reference-text))))
      (should is-fresh))))

(ert-deftest contexture-manual-reference-says-something-of-each ()
  (with-temp-buffer
    (insert (contexture-reference-written))
    (goto-char (point-min))
    (let ((case-fold-search nil) (entries 0))
      (while (re-search-forward "^@[fv]index \\(.*\\)\n\\(.*\\)" nil t)
        (cl-incf entries)
        (ert-info ((match-string 1))
          (should (string-match-p "\\`[A-Z].*\\.\\'" (match-string 2)))))
      (should (> entries 80)))
    ;; No table is empty.
    (goto-char (point-min))
    (should-not (re-search-forward "^@multitable.*\n@end" nil t))))

(ert-deftest contexture-manual-shows-no-command-without-its-key ()
  "An entry by M-x is for a command that no key after the prefix runs."
  (let ((names (contexture-manual-tests--all "^@mxx?{\\(.*\\)}$" 1))
        (bound (mapcar #'cdr (contexture-reference-of contexture-command-map))))
    (should (> (length names) 10))
    (dolist (name names)
      (ert-info (name)
        (should (commandp (intern-soft name)))
        (should-not (memq (intern name) bound))))))

;;;; Options, commands behind a slash, messages, tools, files

(ert-deftest contexture-manual-has-the-slash-commands ()
  (let ((text (contexture-manual-tests--between "@c slash commands" "@end table")) names)
    (with-temp-buffer
      (insert text)
      (goto-char (point-min))
      (while (re-search-forward "^@itemx? /\\([a-z]+\\)" nil t)
        (push (match-string 1) names)))
    (should (equal (sort names #'string<)
                   (sort (mapcar #'car contexture-conversation--commands) #'string<)))))

(defun contexture-manual-tests--sources ()
  "Return the text of the package and of the server, without continued lines."
  (with-temp-buffer
    (dolist (folder '("elisp" "src" "crates"))
      (dolist (file (directory-files-recursively (expand-file-name folder contexture-test-root)
                                                 "\\.\\(?:el\\|rs\\)\\'"))
        (insert-file-contents file)
        (goto-char (point-max))))
    (replace-regexp-in-string "\\\\\n[ \t]*" "" (buffer-string))))

(ert-deftest contexture-manual-quotes-messages-that-exist ()
  (let ((sources (contexture-manual-tests--sources))
        (messages (with-temp-buffer
                    (insert (contexture-manual-tests--between "@c messages" "@end table"))
                    (goto-char (point-min))
                    (cl-loop while (re-search-forward "^@item @samp{\\(.*\\)}" nil t)
                             collect (match-string 1)))))
    (should (> (length messages) 7))
    (dolist (message messages)
      (ert-info (message)
        (should (string-search message sources))))))

(ert-deftest contexture-manual-names-each-tool ()
  (let ((emacs (contexture-manual-tests--between "@c tools of Emacs" "@end multitable"))
        (server (contexture-reference-written))
        (agents (contexture-manual-tests--between "@c tools of agents" "@end table")))
    (dolist (tool contexture-tools--defined)
      (let ((name (contexture-tools--tool-name tool)))
        (ert-info (name) (should (string-search (format "@code{%s}" name) emacs)))))
    (with-temp-buffer
      (insert-file-contents (expand-file-name "docs/protocol.md" contexture-test-root))
      (search-forward "\n| tool | arguments |")
      (forward-line 2)
      (let ((names (cl-loop while (looking-at "| `\\([a-z_]+\\)`")
                            collect (match-string 1)
                            do (forward-line))))
        (should (> (length names) 5))
        (dolist (name names)
          (ert-info (name) (should (string-search (format "@item %s\n" name) server))))))
    (with-temp-buffer
      (insert "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\
\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n\
{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n\
{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n")
      (call-process-region nil nil contexture-test-binary t t nil "--ephemeral" "mcp")
      (goto-char (point-min))
      (should (re-search-forward "\"id\":2" nil t))
      (goto-char (line-beginning-position))
      (let ((names (mapcar (lambda (tool) (gethash "name" tool))
                           (gethash "tools" (gethash "result" (json-parse-buffer))))))
        (should (= 7 (length names)))
        (dolist (name names)
          (should (string-match-p (format "^@item %s$" name) agents)))))))

(ert-deftest contexture-manual-names-the-files-of-the-state-folder ()
  (let ((text (contexture-manual-tests--between "@c the state folder" "@end table")))
    (contexture-test-with-state
      (contexture-request 'add-item '(:manager "notes" :content "x"))
      (let ((folder (plist-get (contexture-request 'initialize) :state-directory)))
        (dolist (name (directory-files (or folder (concat llm-ert-directory "state")) nil
                                       directory-files-no-dot-files-regexp))
          (ert-info (name)
            (should (or (string-prefix-p "contexture." name)
                        (string-match-p (format "^@itemx? %s$" (regexp-quote name)) text)))))))))

(ert-deftest contexture-manual-explains-the-eight-words ()
  (let ((text (contexture-manual-tests--between "@chapter Glossary" "@end table")))
    (dolist (word '("item" "context" "conversation" "model" "limit" "note" "undo" "agent"))
      (should (string-match-p (format "^@item %s$" word) text)))))

(ert-deftest contexture-manual-answers-what-users-ask ()
  (should (<= 20 (with-temp-buffer
                   (insert (contexture-manual-tests--between "@chapter Questions" "@end table"))
                   (goto-char (point-min))
                   (how-many "^@item .*\\?$")))))

;;;; Examples

(defun contexture-manual-tests--blocks (kind)
  "Return the blocks of KIND, lisp or example, each as (NOTE . TEXT).
NOTE is the comment on the line before, or nil."
  (contexture-manual-tests--in
    (cl-loop while (re-search-forward
                    (format "^\\(?:@c \\(.*\\)\n\\)?@%s\n\\(\\(?:.*\n\\)*?\\)@end %s$" kind kind)
                    nil t)
             collect (cons (match-string 1)
                           (contexture-manual-tests--plain
                            (replace-regexp-in-string
                             " +# @r{.*}$" "" (match-string 2)))))))

(defun contexture-manual-tests--to-run (kind)
  "Return the blocks of KIND that are not marked as not to run."
  (cl-remove-if (lambda (block) (string-prefix-p "not run: " (or (car block) "")))
                (contexture-manual-tests--blocks kind)))

(defvar mcp-hub-servers)
(defvar sly-lisp-implementations)

(ert-deftest contexture-manual-examples-in-lisp-run ()
  (should (> (length (contexture-manual-tests--to-run "lisp")) 7))
  ;; Those that are not run are read, and so are those of the manual of the kit for tests.
  (dolist (name '("docs/contexture.texi" "docs/llm-ert.texi"))
    (let ((contexture-manual-tests--file (expand-file-name name contexture-test-root)))
      (dolist (block (contexture-manual-tests--blocks "lisp"))
        (unless (equal (car block) "not run: Common Lisp, which another test runs")
          (with-temp-buffer
            (insert (cdr block))
            (goto-char (point-min))
            (ert-info ((cdr block))
              (should (condition-case nil (while t (should (read (current-buffer))))
                        (end-of-file (eobp))))))))))
  (contexture-test-with-server
    (let (contexture-add-to contexture-providers contexture-tools mcp-hub-servers
          sly-lisp-implementations (contexture-tools--defined contexture-tools--defined)
          (after-load-alist (copy-tree after-load-alist)))
      (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
        (dolist (block (contexture-manual-tests--to-run "lisp"))
          (ert-info ((cdr block))
            (let ((contexture-add-to 'project))
              (eval (read (concat "(progn " (cdr block) ")")) t))))))))

(defun contexture-manual-tests--kind (block)
  "Return of what kind BLOCK, an example, is."
  (pcase block
    (`("template" . ,_) 'template)
    (`("script" . ,_) 'script)
    (`(,_ . ,text)
     (cond ((string-match-p "\\`\\(?:\\[\\[\\|max-items\\)" text) 'toml)
           ((string-match-p "\\`\\(?:contexture\\|git\\) " text) 'shell)
           ((string-match-p "\\`{" text) 'json)
           (t 'text)))))

(defun contexture-manual-tests--run (home &rest command)
  "Run COMMAND with HOME as the home folder; return its status and what it says."
  (with-temp-buffer
    (let ((process-environment
           (append (list (concat "HOME=" home) "XDG_STATE_HOME" "XDG_CONFIG_HOME" "XDG_CACHE_HOME"
                         "XDG_RUNTIME_DIR" "CONTEXTURE_STATE" "CONTEXTURE_CONFIG"
                         (concat "PATH=" home "bin:" (getenv "PATH")))
                   process-environment)))
      (cons (apply #'call-process "env" nil t nil command) (buffer-string)))))

(ert-deftest contexture-manual-examples-run-or-parse ()
  (let ((kinds (make-hash-table)))
    (llm-ert-with-files `(("bin/") (".config/contexture/templates/")
                          ("src/main.rs" . "fn main() {}\n") ("src/parse.rs" . "fn parse() {}\n")
                          ("src/lib.rs" . ,(mapconcat (lambda (n) (format "// %d\n" n))
                                                      (number-sequence 1 40) "")))
      (make-symbolic-link contexture-test-binary "bin/contexture")
      (pcase-dolist ((and block `(,note . ,text)) (contexture-manual-tests--to-run "example"))
        (let ((kind (contexture-manual-tests--kind block)))
          (cl-incf (gethash kind kinds 0))
          (ert-info (text)
            (pcase kind
              ('text (should-not note))
              ('json (should (json-parse-string text)))
              ('shell
               (pcase (contexture-manual-tests--run
                       llm-ert-directory "bash" "-euc"
                       (concat "claude() { :; }\n"
                               ;; What would ask is only shown.
                               (replace-regexp-in-string "^contexture setup .*" "\\& --dry-run" text)))
                 (`(,status . ,said) (ert-info (said) (should (equal status 0))))))
              ('template
               (llm-ert-write-file ".config/contexture/templates/mine.md" text)
               (let ((said (cdr (contexture-manual-tests--run
                                 llm-ert-directory "contexture" "call" "list-templates"))))
                 (should (string-search "Keeps what was decided" said))))
              ((or 'toml 'script)
               (llm-ert-write-file "script.toml" (if (eq kind 'script) text ""))
               (llm-ert-write-file
                "config.toml"
                (if (eq kind 'toml) text
                  "[[providers]]\nname = \"s\"\nkind = \"scripted\"\nmodel = \"m\"\nscript = \"script.toml\"\n"))
               (pcase (contexture-manual-tests--run
                       llm-ert-directory "contexture" "--config" "config.toml" "--ephemeral"
                       "call" "list-providers")
                 (`(,status . ,said) (ert-info (said) (should (equal status 0)))))))))))
    (should (> (gethash 'toml kinds) 10))
    (should (> (gethash 'shell kinds) 5))
    (should (= 1 (gethash 'template kinds) (gethash 'script kinds)))))

(ert-deftest contexture-manual-package-vc-leaves-other-packages-out ()
  "It takes what all files need for what the package needs."
  (pcase-let* ((`(,_ (quote (contexture . ,spec)))
                (cl-loop for (_ . text) in (contexture-manual-tests--blocks "lisp")
                         when (string-prefix-p "(package-vc-install" text) return (read text)))
               (folder (expand-file-name (plist-get spec :lisp-dir) contexture-test-root))
               (ignored (mapconcat (lambda (pattern) (wildcard-to-regexp (concat "*/" pattern)))
                                   (plist-get spec :ignored-files) "\\|"))
               (needing 0))
    (dolist (file (directory-files folder t "\\.el\\'"))
      (with-temp-buffer
        (insert-file-contents file)
        (when (re-search-forward "^;; Package-Requires: .*\\(?:contexture\\|llm-ert\\)" nil t)
          (cl-incf needing)
          (ert-info (file) (should (string-match-p ignored file))))))
    (should (> needing 0))))

;;;; Links, and help

(ert-deftest contexture-manual-links-lead-somewhere ()
  (unless (executable-find "makeinfo") (ert-skip "There is no makeinfo"))
  (llm-ert-with-files nil
    (dolist (name '("contexture" "llm-ert"))
      (with-temp-buffer
        (should (equal 0 (call-process "makeinfo" nil t nil "--no-split" "-o" (concat name ".info")
                                       (expand-file-name (format "docs/%s.texi" name)
                                                         contexture-test-root))))
        (should (equal (buffer-string) ""))))
    ;; What is shown about a buffer is there, and so are topics of the index.
    (let ((Info-directory-list (list llm-ert-directory)) (Info-additional-directory-list nil))
      (pcase-dolist (`(,mode . ,node) contexture-help--nodes)
        (ert-info ((format "%s: %s" mode node))
          (save-window-excursion
            (contexture-help node)
            (should (equal Info-current-node node)))))
      (save-window-excursion
        (contexture-help "contexture-add-defun")
        (should (equal Info-current-node "Adding"))
        (Info-goto-emacs-command-node 'contexture-sessions-resume)
        (should (equal Info-current-node "Sessions of agents"))
        (kill-buffer)))))

(ert-deftest contexture-manual-is-linked-in-the-help-of-each-of-our-buffers ()
  "That is what `C-h m' shows; the link leads to the node."
  (let ((nodes (contexture-manual-tests--nodes)))
    (mapatoms
     (lambda (mode)
       (when (and (string-match-p "\\`contexture-.*-mode\\'" (symbol-name mode))
                  (get mode 'derived-mode-parent)
                  (not (string-search "-ert" (symbol-name mode))))
         (ert-info ((symbol-name mode)) (should (assq mode contexture-help--nodes))))))
    (pcase-dolist (`(,mode . ,node) contexture-help--nodes)
      (ert-info ((symbol-name mode))
        (should (member node nodes))
        (with-temp-buffer
          (insert (substitute-command-keys (documentation mode)))
          (help-make-xrefs (current-buffer))
          (goto-char (point-min))
          (should (search-forward (concat "(contexture)" node) nil t))
          (should (equal (button-get (button-at (1- (point))) 'help-args)
                         (list (concat "(contexture)" node)))))))))

(ert-deftest contexture-manual-is-found-where-it-is-installed ()
  (llm-ert-with-files '(("share/info/contexture.info" . "") ("build/contexture.info" . "")
                        ("share/emacs/site-lisp/contexture/contexture.el" . "")
                        ("elisp/contexture.el" . "") ("elsewhere/x/contexture.el" . ""))
    (pcase-dolist (`(,package . ,folder) '(("share/emacs/site-lisp/contexture/contexture.el" . "share/info")
                                           ("elisp/contexture.el" . "build")
                                           ("elsewhere/x/contexture.el" . nil)))
      (should (equal (contexture--manual-folder (expand-file-name package))
                     (and folder (expand-file-name folder)))))))

(ert-deftest contexture-manual-is-where-help-looks-for-commands ()
  "`C-h F' and `C-h K' find a command's entry by this property."
  (pcase-dolist (`(,map ,_ ,command) (contexture-manual-tests--entries))
    (when (eq map 'contexture-command-map)
      (ert-info ((symbol-name command))
        (should (equal (get command 'info-file) "contexture"))))))

(defmacro contexture-manual-tests--in-a-shell (&rest body)
  "Run BODY where `contexture help' finds the manual; skip the test without makeinfo."
  (declare (indent 0) (debug t))
  `(progn
     (unless (executable-find "makeinfo") (ert-skip "There is no makeinfo"))
     (llm-ert-with-files nil
       (call-process "makeinfo" nil nil nil "--no-split" "-o" "contexture.info"
                     contexture-manual-tests--file)
       (let ((process-environment
              (cons (concat "INFOPATH=" llm-ert-directory) process-environment)))
         ,@body))))

(defun contexture-manual-tests--help (words)
  "Return how `contexture help WORDS' ended, and what it said."
  (with-temp-buffer
    (cons (call-process contexture-test-binary nil t nil "help" words) (buffer-string))))

(ert-deftest contexture-manual-is-shown-in-a-shell ()
  "`contexture help' shows each node, and names the node of each command."
  (contexture-manual-tests--in-a-shell
    (let* ((say (lambda (words)
                  (pcase-let ((`(,status . ,text) (contexture-manual-tests--help words)))
                    (should (equal 0 status))
                    text)))
           (topics (split-string (funcall say "--topics") "\n" t)))
      (should (equal topics (contexture-manual-tests--nodes)))
      (dolist (topic topics)
        (ert-info (topic)
          (let ((text (funcall say topic)))
            (should-not (string-search "*note" text))
            (should (> (length text) 100)))))
      (should (string-search "contexture-add-defun" (funcall say "contexture-add-defun")))
      (with-temp-buffer
        (call-process contexture-test-binary nil t nil "--help")
        (goto-char (point-min))
        (re-search-forward "^Commands:\n")
        (let ((count 0))
          (while (looking-at "  +\\([a-z]+\\)  ")
            (cl-incf count)
            (ert-info ((match-string 1))
              (should (string-search "\nThe manual has more: contexture help "
                                     (funcall say (match-string 1)))))
            (forward-line)
            (while (looking-at "   +[^ ]") (forward-line)))
          (should (> count 15)))))))

(defconst contexture-manual-tests--asked
  '((new "prefix key" "binds no key")
    (new "installing" "contexture-install-server")
    (new "undo" "C-c x u")
    (new "local models" "kind = \"ollama\"")
    (new "API keys" "auth-source")
    (new "stopping the server" "contexture call shutdown")
    (gptel "backends of gptel" "contexture-import-gptel")
    (gptel "gptel" "contexture-gptel-mode")
    (gptel "coming from gptel" "gptel-rewrite")
    (agent "what an agent gets" "secrets is not given")
    (agent "setting up an agent" "contexture setup claude")
    (agent "contexture setup" "Remove everything again")
    (agent "agents, sending to them" "C-c x N")
    (agent "contexture-sessions-resume" "Go on with it")
    (agent "memories, deleting" "contexture call update-memory")
    (lisp "SLIME" "sly-connect")
    (lisp "version, of SLY or SLIME" "--slynk-version")
    (lisp "contexture-lisp-add-error" "restarts")
    (lisp "Lisp image, for models" "lisp_evaluate")
    (tests "tests, of your own package" "llm-ert")
    (admin "state folder" ".local/state/contexture")
    (admin "backup" "contexture backup state.backup")
    (admin "erasing" "rm -r")
    (admin "ports" "SSH tunnel")
    (admin "telemetry" "no telemetry")
    (admin "upgrading" "make install")
    (admin "uninstalling" "contexture setup claude --remove")
    (admin "log" "CONTEXTURE_LOG"))
  "Who asks, the words that are looked up, and a text of the answer.")

(defun contexture-manual-tests--answered-p (words answer)
  "Return non-nil if looking up WORDS finds ANSWER in at most two steps.
The second step follows a link of the first."
  (let ((text (cdr (contexture-manual-tests--help words))) (plain (lambda (text) (replace-regexp-in-string "[ \n]+" " " text)))
        (start 0) nodes)
    (while (string-match "contexture help \\(.*\\)\\|[Ss]ee \"\\([^\"]*\\)\"\\|^\\* \\([^:\n]*\\)::" text start)
      (setq start (match-end 0))
      (push (or (match-string 1 text) (match-string 2 text) (match-string 3 text)) nodes))
    (or (string-search answer (funcall plain text))
        (cl-some (lambda (node)
                   (string-search
                    answer
                    (funcall plain (cdr (contexture-manual-tests--help (funcall plain node))))))
                 nodes))))

(ert-deftest contexture-manual-answers-in-two-steps ()
  "Users find by the index, or one link after it, what they ask."
  (contexture-manual-tests--in-a-shell
    (pcase-dolist (`(,who ,words ,answer) contexture-manual-tests--asked)
      (ert-info ((format "%s asks about %s" who words))
        (should (contexture-manual-tests--answered-p words answer))))))

(ert-deftest contexture-manual-pages-for-browsers-have-a-search ()
  (unless (executable-find "makeinfo") (ert-skip "There is no makeinfo"))
  (llm-ert-with-files nil
    (with-temp-buffer
      (should (equal 0 (call-process (expand-file-name "docs/update-pages" contexture-test-root)
                                     nil t nil "html")))
      (should (equal (buffer-string) "")))
    (dolist (name '("contexture" "llm-ert"))
      (with-temp-buffer
        (insert-file-contents (format "html/%s.html" name))
        (dolist (text '("Search the manual" "prefers-color-scheme: dark" "id=\"Top\""))
          (should (save-excursion (search-forward text nil t))))
        (should-not (re-search-forward "<script[^>]* src=\\|<link[^>]*stylesheet" nil t))))))

(defun contexture-manual-tests--pages ()
  "Return the pages that are written in Markdown."
  (cl-remove-if-not
   #'file-exists-p
   (mapcar (lambda (name) (expand-file-name name contexture-test-root))
           '("README.md" "SECURITY.md" "CHANGELOG.md" "ARCHITECTURE.md" "docs/benchmarks.md"
             "docs/speed.md" "docs/compatibility.md" "docs/comparison.md" "docs/tools.md"
             "docs/llm-ert.md" "docs/library.md" "docs/client.md" "docs/protocol.md"))))

(ert-deftest contexture-manual-links-of-pages-lead-somewhere ()
  (dolist (page (contexture-manual-tests--pages))
    (with-temp-buffer
      (insert-file-contents page)
      (while (re-search-forward "](\\([^)#: ]+\\)\\(?:#[^)]*\\)?)" nil t)
        (let ((name (match-string 1)))
          (ert-info ((format "%s: %s" page name))
            (should (file-exists-p (expand-file-name name (file-name-directory page))))))))))

(ert-deftest contexture-manual-names-files-of-the-sources-that-exist ()
  (dolist (name (contexture-manual-tests--all "@file{\\(docs/[^}]*\\|[A-Z]+\\.md\\)}" 1))
    (ert-info (name) (should (file-exists-p (expand-file-name name contexture-test-root))))))

(ert-deftest contexture-manual-tables-of-pages-are-whole ()
  "Each row of a table has as many cells as its head."
  (dolist (page (contexture-manual-tests--pages))
    (with-temp-buffer
      (insert-file-contents page)
      (while (re-search-forward "^|.*|$" nil t)
        (let ((cells (lambda ()
                       (how-many "[^\\\\]|" (line-beginning-position) (line-end-position)))) head)
          (goto-char (line-beginning-position))
          (setq head (funcall cells))
          (while (looking-at "|")
            (ert-info ((format "%s:%d" page (line-number-at-pos)))
              (should (= head (funcall cells))))
            (forward-line)))))))

;;;; Sentences

(defconst contexture-manual-tests--longest-average 18
  "The most words that the sentences of a document may have on average.")

(defconst contexture-manual-tests--longest 26
  "The most words that a sentence of a document may have.")

(defun contexture-manual-tests--prose (file)
  "Return the paragraphs of FILE, without code, tables, headings and markup."
  (with-temp-buffer
    (insert-file-contents file)
    (dolist (block '("^```[^\0]*?\n```.*$"
                     "^@\\(lisp\\|example\\|multitable\\|menu\\|copying\\|titlepage\\|macro\\)\\b[^\0]*?\n@end \\1.*$"
                     "^\\(?: \\{4\\}\\||\\|#\\|<!--\\|\\*+ \\|@c \\|\\\\input\\).*$"))
      (goto-char (point-min))
      (while (re-search-forward block nil t) (replace-match "\n")))
    (goto-char (point-min))
    (while (re-search-forward "^@\\(?:item\\|cmd\\|mx\\|opt\\|def\\|end\\|node\\|[a-z]*section\\|chapter\\).*$\\|^ *[-*] \\|^ *[0-9]+\\. " nil t)
      (replace-match "\n"))
    (goto-char (point-min))
    (while (re-search-forward "^@[a-z]+\\(?: .*\\)?$" nil t) (replace-match ""))
    (goto-char (point-min))
    ;; A name between quotes is one word.
    (while (re-search-forward "`[^`]*`\\|@[a-z]+{[^{}]*}" nil t) (replace-match "x"))
    (split-string (buffer-string) "\n[ \t]*\n" t "[ \t\n]+")))

(defun contexture-manual-tests--sentences (file)
  "Return the number of words of each sentence of FILE."
  (cl-loop for paragraph in (contexture-manual-tests--prose file)
           append (cl-loop for sentence in (split-string paragraph "[.:?!][\"')]*\\(?:[ \n]+\\|\\'\\)" t)
                           for words = (length (split-string sentence "[ \n]+" t))
                           when (> words 2) collect words)))

(ert-deftest contexture-manual-sentences-are-short ()
  (dolist (name '("docs/contexture.texi" "docs/llm-ert.texi" "README.md" "SECURITY.md" "NEWS"
                  "docs/benchmarks.md" "docs/speed.md" "docs/compatibility.md" "docs/comparison.md"
                  "docs/tools.md" "docs/llm-ert.md" "docs/library.md" "ARCHITECTURE.md"
                  "CHANGELOG.md" "docs/client.md" "docs/protocol.md"))
    (let* ((lengths (contexture-manual-tests--sentences (expand-file-name name contexture-test-root)))
           (average (/ (apply #'+ lengths) (float (length lengths)))))
      (message "%s: %d sentences, %.1f words on average, the longest has %d" name (length lengths)
               average (apply #'max lengths))
      (ert-info ((format "%s: %.1f words" name average))
        (should (<= average contexture-manual-tests--longest-average)))
      (ert-info ((format "%s: a sentence is too long" name))
        (should (<= (apply #'max lengths) contexture-manual-tests--longest))))))

(ert-deftest contexture-manual-measures-sentences ()
  (llm-ert-with-files '(("a.md" . "# A head\n\nOne two `three four` five.  Six seven eight!\n\n| a | b |\n\n\
```text\nNot to be counted.\n```\n")
                        ("a.texi" . "@node A\n@chapter A\n\nOne two @code{three four} five.\n\n@example\n\
Not to be counted.\n@end example\n\n@table @asis\n@item One two three\nSix seven eight.\n@end table\n"))
    (should (equal (contexture-manual-tests--sentences "a.md") '(4 3)))
    (should (equal (contexture-manual-tests--sentences "a.texi") '(4 3)))))

(provide 'contexture-manual-tests)
;;; contexture-manual-tests.el ends here
