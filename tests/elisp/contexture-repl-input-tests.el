;;; contexture-repl-input-tests.el --- Tests of what is written  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The text behind the prompt, its history, its undo, the commands behind
;; a slash, and the file that keeps what would be lost.

;;; Code:

(require 'contexture-repl-test-helper)

(defmacro contexture-repl-input-tests--as-new-emacs (&rest body)
  "Run BODY with nothing in memory of what was said."
  (declare (indent 0) (debug t))
  `(let ((contexture-repl--history nil)
         (contexture-repl--new-history nil)
         (contexture-repl--read nil))
     ,@body))

(defun contexture-repl-input-tests--completions ()
  "Return what can be completed at point, and the function that annotates it."
  (pcase-let ((`(,start ,end ,table . ,properties) (contexture-repl--complete)))
    (cons (all-completions (buffer-substring-no-properties start end) table)
          (plist-get properties :annotation-function))))

(ert-deftest contexture-repl-completion-says-that-nothing-matches ()
  (contexture-repl-test-with nil
    (dolist (text '("/nix" "/template nix" "/phase nix"))
      (contexture-repl--set-text text)
      (should (string-search "No match"
                             (cl-letf* ((said "")
                                        ((symbol-function 'ding) #'ignore)
                                        ((symbol-function 'minibuffer-message)
                                         (lambda (text &rest _) (setq said text))))
                               (completion-at-point)
                               said))))
    (contexture-repl--set-text "@nix")
    (contexture-test-message "^No file, symbol or item matches @nix"
      (let ((this-command 'completion-at-point))
        (completion-at-point)))))

;;;; Text

(ert-deftest contexture-repl-takes-lines-and-sends-them-as-one ()
  (contexture-repl-test-with '(("A"))
    (contexture-repl-test-type "one")
    (contexture-repl-newline)
    (insert "two")
    (contexture-repl-send)
    (contexture-repl-test-wait)
    (should (equal (plist-get (car (last (contexture-ert-calls 'chat))) :content) "one\ntwo"))))

(ert-deftest contexture-repl-what-is-said-cannot-be-edited ()
  (contexture-repl-test-with '(("A"))
    (contexture-repl-test-send "Q")
    (dolist (position (list (point-min) (1+ (point-min)) (1- contexture-repl--tail)
                            contexture-repl--tail (1- contexture-repl--input)))
      (goto-char position)
      (should-error (insert "x") :type 'text-read-only))
    (goto-char contexture-repl--input)
    (insert "x")
    (should (equal (contexture-repl--text) "x"))))

(ert-deftest contexture-repl-typing-above-the-prompt-goes-behind-it ()
  (contexture-repl-test-with '(("A"))
    (contexture-repl-test-send "Q")
    (goto-char (point-min))
    (let ((this-command 'self-insert-command))
      (run-hooks 'pre-command-hook))
    (should (= (point) (point-max)))
    (goto-char (point-min))
    (let ((this-command 'forward-char))
      (run-hooks 'pre-command-hook))
    (should (= (point) (point-min)))
    (contexture-repl-send)
    (should (= (point) (point-max)))))

(ert-deftest contexture-repl-undo-knows-only-what-is-written ()
  (contexture-repl-test-with '(("A1 " "long") ("A2"))
    (contexture-repl-test-send "Q1")
    (should-not buffer-undo-list)
    (contexture-repl-test-type "hello")
    (undo-boundary)
    (insert " world")
    (undo-boundary)
    (delete-region (- (point) 3) (point))
    (undo-boundary)
    (contexture-repl--note "Something above, of some length")
    (setq contexture-repl--items '((:id "ctx-1" :tokens 7)))
    (contexture-repl--draw-context)
    (setq last-command 'other)
    (undo)
    (should (equal (contexture-repl--text) "hello world"))
    (setq last-command 'undo)
    (undo-more 1)
    (should (equal (contexture-repl--text) "hello"))
    (should (string-search "Something above" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-copied-text-is-what-was-said ()
  (contexture-repl-test-with (list (list (make-string 9000 ?x)))
    (contexture-repl-test-send "Q")
    (goto-char (point-min))
    (search-forward "xxx")
    (let ((text (filter-buffer-substring (match-beginning 0) contexture-repl--tail)))
      (should (string-prefix-p (concat (make-string 9000 ?x) "\n") text))
      (should-not (text-properties-at 0 text)))))

;;;; History

(ert-deftest contexture-repl-history-goes-back-and-forth ()
  (contexture-repl-test-with '(("A1") ("A2"))
    (contexture-repl-test-send "Q1")
    (contexture-repl-test-send "Q2")
    (contexture-repl-test-type "unfinished")
    (contexture-repl-previous-input 1)
    (should (equal (contexture-repl--text) "Q2"))
    (contexture-repl-previous-input 1)
    (should (equal (contexture-repl--text) "Q1"))
    (contexture-test-user-error "no older entry" (contexture-repl-previous-input 1))
    (contexture-repl-next-input 2)
    (should (equal (contexture-repl--text) "unfinished"))
    (contexture-test-user-error "no newer entry" (contexture-repl-next-input 1))
    (contexture-repl-search-input "Q1")
    (should (equal (contexture-repl--text) "Q1"))
    (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) "")))
      (call-interactively #'contexture-repl-search-input))
    (should (equal (contexture-repl--text) "Q1"))))

(ert-deftest contexture-repl-history-outlives-emacs-and-only-the-user-reads-it ()
  (contexture-repl-test-with '(("A1"))
    (contexture-repl-test-send "Q1 \"ü\"\nline")
    (should (= (file-modes contexture-repl-history-file) #o600))
    (contexture-repl-input-tests--as-new-emacs
      (contexture-repl-previous-input 1)
      (should (equal (contexture-repl--text) "Q1 \"ü\"\nline")))))

(ert-deftest contexture-repl-history-has-what-another-emacs-said ()
  (contexture-repl-test-with '(("A1"))
    (contexture-repl-input-tests--as-new-emacs
      (contexture-repl--remember "other")
      (contexture-repl--save))
    (contexture-repl-test-send "mine")
    (should (equal (plist-get (contexture-repl--file-contents) :history)
                   '("mine" "other")))))

(ert-deftest contexture-repl-history-has-each-text-once-and-an-end ()
  (let ((contexture-repl-history-length 2))
    (should (equal (contexture-repl--with-newest "a" '("b" "a")) '("a" "b")))
    (should (equal (contexture-repl--with-newest "c" '("a" "b")) '("c" "a")))))

(ert-deftest contexture-repl-history-survives-a-file-that-is-none ()
  (contexture-repl-test-with '(("A1"))
    (dolist (text '("" "(((" "42" "(1 2)" "#1=(#1#)"))
      (contexture-ert-write-file "history" text)
      (contexture-repl-input-tests--as-new-emacs
        (contexture-test-user-error "no older entry" (contexture-repl-previous-input 1))))
    (contexture-repl-test-send "Q1")
    (should (equal (plist-get (contexture-repl--file-contents) :history) '("Q1")))))

(ert-deftest contexture-repl-history-can-be-kept-nowhere ()
  (contexture-repl-test-with '(("A1"))
    (let ((contexture-repl-history-file nil))
      (contexture-repl-test-send "Q1")
      (contexture-repl-previous-input 1)
      (should (equal (contexture-repl--text) "Q1")))))

(ert-deftest contexture-repl-history-that-cannot-be-written-stops-nothing ()
  (contexture-repl-test-with '(("A1"))
    (let ((contexture-repl-history-file "/proc/no/such/file"))
      (contexture-repl-test-send "Q1")
      (should (string-search "A1" (contexture-repl-test-shown))))))

(ert-deftest contexture-repl-draft-is-kept-when-emacs-rests ()
  (contexture-repl-test-with nil
    (contexture-repl-test-type "not yet")
    (should contexture-repl--idle-timer)
    (contexture-repl--idle (current-buffer))
    (should (equal (plist-get (contexture-repl--file-contents) :drafts)
                   '(("talk" . "not yet"))))
    (contexture-repl--set-text "")
    (contexture-repl--keep-all)
    (should-not (plist-get (contexture-repl--file-contents) :drafts))))

;;;; Commands behind a slash

(ert-deftest contexture-repl-command-help-lists-all ()
  (contexture-repl-test-with nil
    (contexture-repl-test-send "/help")
    (dolist (entry contexture-repl--commands)
      (should (string-search (concat "/" (car entry)) (contexture-repl-test-shown))))
    (should (equal (contexture-repl--text) ""))
    (contexture-ert-should-not-called 'chat)))

(ert-deftest contexture-repl-command-that-is-none-stays ()
  (contexture-repl-test-with nil
    (contexture-repl-test-type "/nonsense x")
    (contexture-test-user-error "no command /nonsense" (contexture-repl-send))
    (should (equal (contexture-repl--text) "/nonsense x"))))

(ert-deftest contexture-repl-command-is-no-path ()
  (should (contexture-repl--command-p "/add x"))
  (should (contexture-repl--command-p "/help\n"))
  (should-not (contexture-repl--command-p "/usr/bin/env is what?"))
  (should-not (contexture-repl--command-p "// comment"))
  (should-not (contexture-repl--command-p "what is /add")))

(ert-deftest contexture-repl-commands-add-drop-clear-undo ()
  (contexture-repl-test-with nil
    (let ((file (contexture-test-file "notes.txt" "note"))
          (count (lambda () (length (contexture-test-items contexture-manager)))))
      (contexture-repl-test-type (concat "/add " file))
      (contexture-repl-send)
      (contexture-ert-wait-for (string-search "notes.txt" (contexture-repl-test-context)))
      (contexture-repl-test-type "/drop nothing")
      (contexture-test-user-error "has no item called" (contexture-repl-send))
      (should (equal (contexture-repl--text) "/drop nothing"))
      (contexture-repl--set-text "/drop notes.txt")
      (contexture-repl-send)
      (contexture-ert-wait-for (= (funcall count) 0))
      (contexture-repl-test-type "/undo")
      (contexture-repl-send)
      (contexture-ert-wait-for (= (funcall count) 1))
      (contexture-repl-test-type "/clear")
      (contexture-repl-send)
      (contexture-ert-wait-for (= (funcall count) 0)))))

(ert-deftest contexture-repl-command-context-lists-the-items ()
  (contexture-repl-test-with nil
    (contexture-request 'add-context (list :manager contexture-manager :content "one"))
    (contexture-repl-test-type "/context")
    (contexture-repl-send)
    (should (get-buffer contexture-list-buffer))))

(ert-deftest contexture-repl-command-stats-tells-numbers ()
  (contexture-repl-test-with '(("A1"))
    (contexture-repl-test-send "Q1")
    (contexture-repl-test-send "/stats")
    (should (string-match-p "2 messages in view with [0-9]+ tokens of [0-9]+ ([0-9.]+ %)"
                            (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-commands-checkpoint-and-rollback ()
  (contexture-repl-test-with '(("A1") ("A2"))
    (contexture-repl-test-send "Q1")
    (contexture-repl-test-send "/checkpoint so far so good")
    (should (string-match "Checkpoint \\(chk-[0-9]+\\);" (contexture-repl-test-shown)))
    (let ((id (match-string 1 (contexture-repl-test-shown))))
      (contexture-repl-test-send "Q2")
      (contexture-repl-test-type (concat "/rollback " id))
      (contexture-repl-send)
      (contexture-ert-wait-for (not (string-search "Q2" (contexture-repl-test-shown))))
      (should (equal (mapcar #'cadr (contexture-repl-test-log)) '("Q1" "A1"))))))

(ert-deftest contexture-repl-command-rollback-says-how-to-undo-it ()
  (contexture-repl-test-with '(("A1") ("A2"))
    (contexture-repl-test-send "Q1")
    (contexture-repl-test-send "/checkpoint before two")
    (contexture-repl-test-send "Q2")
    (contexture-test-message "Conversation talk is back at chk-[0-9]+: 1 turn, 2 messages lost; \\(?:C-c x n B\
\\|M-x contexture-session-undo-rollback\\) undoes this"
      (contexture-repl-test-type "/rollback before two")
      (contexture-repl-send))
    ;; What it names undoes that, even if another conversation is current.
    (contexture-request 'open-session '(:name "other"))
    (contexture-test-message "The rollback of conversation talk is undone: 1 turn restored"
      (contexture-session-undo-rollback))
    (should (equal (mapcar #'cadr (contexture-repl-test-log)) '("Q1" "A1" "Q2" "A2")))))

(ert-deftest contexture-repl-context-counts-no-covered-item ()
  (contexture-repl-test-with nil
    (setq contexture-repl--items '((:id "ctx-1" :tokens 5)
                                   (:id "ctx-2" :tokens 3 :covered-by "ctx-1")))
    (should (string-suffix-p "2 items, 5 tokens" (contexture-repl--context-text)))))

(ert-deftest contexture-repl-command-rollback-takes-a-message ()
  (contexture-repl-test-with '(("A1") ("A2"))
    (contexture-repl-test-send "Q1")
    (contexture-repl-test-send "/checkpoint before two")
    (contexture-repl-test-send "Q2")
    (contexture-repl-test-type "/rollback before t")
    (should (equal (car (contexture-repl-input-tests--completions)) '("before two")))
    (insert "wo")
    (contexture-repl-send)
    (contexture-ert-wait-for (not (string-search "Q2" (contexture-repl-test-shown))))
    (should (equal (contexture-repl--text) ""))
    (should (equal (mapcar #'cadr (contexture-repl-test-log)) '("Q1" "A1")))))

(ert-deftest contexture-repl-command-that-fails-later-is-given-back ()
  (contexture-repl-test-with '(("A1"))
    (dolist (text '("/rollback nowhere" "/rollback chk-99"))
      (contexture-repl--set-text text)
      (contexture-repl-send)
      (should (equal (contexture-repl--text) ""))
      (contexture-ert-wait-for (equal (contexture-repl--text) text)))
    (should (string-search "Error: No checkpoint is called nowhere;"
                           (contexture-repl-test-shown)))
    (contexture-repl--set-text "")
    (contexture-repl--show-problem '(:message "of something else"))
    (should (equal (contexture-repl--text) ""))))

(ert-deftest contexture-repl-commands-template-and-model ()
  (contexture-repl-test-with nil
    (contexture-repl-test-send "/template goal-oriented")
    (contexture-repl-test-send "/model large")
    (should (equal (mapcar (lambda (key) (plist-get contexture-repl--settings key))
                           '(:template :manage :model :provider))
                   '("goal-oriented" t "large" nil)))
    (contexture-repl-test-send "/template off")
    (should-not (plist-get contexture-repl--settings :manage))))

(ert-deftest contexture-repl-command-phase-is-one-of-four ()
  (contexture-repl-test-with '(("A1"))
    (contexture-repl-test-type "/phase lunch")
    (contexture-test-user-error "no phase lunch; type planning"
      (contexture-repl-send))
    (contexture-repl--set-text "")
    (contexture-repl-test-send "/phase testing")
    (contexture-repl-test-send "Q1")
    (should (eq (plist-get (car (last (contexture-ert-calls 'chat))) :phase) :testing))
    (contexture-repl-test-send "/phase off")
    (should-not (plist-get contexture-repl--settings :phase))))

(ert-deftest contexture-repl-command-session-switches ()
  (contexture-repl-test-with nil
    (contexture-repl-test-type "/session other")
    (contexture-repl-send)
    (should (equal (buffer-name) "*contexture: other*"))))

(ert-deftest contexture-repl-command-explain-shows-the-window ()
  (contexture-repl-test-with '(("A1"))
    (contexture-repl-test-send "Q1")
    (contexture-request 'build-context '(:session "talk"))
    (contexture-repl-test-type "/explain")
    (contexture-repl-send)
    (contexture-ert-wait-for (get-buffer "*contexture: explain*"))))

(ert-deftest contexture-repl-command-explain-is-about-this-session ()
  (contexture-repl-test-with nil
    (contexture-request 'build-context '(:session "talk"))
    (contexture-request 'open-session '(:name "other"))
    (dolist (explain (list (lambda () (contexture-repl-test-type "/explain")
                             (contexture-repl-send))
                           (lambda () (call-interactively #'contexture-explain))))
      (funcall explain)
      (contexture-ert-wait-for (get-buffer "*contexture: explain*"))
      (with-current-buffer "*contexture: explain*"
        (should (string-match-p "conversation talk," header-line-format))
        (kill-buffer)))))

(ert-deftest contexture-repl-command-dry-run-shows-what-would-be-sent ()
  (contexture-repl-test-played
      '((result (:payload "system: be good" :tokens 42 :max-tokens 8192
                 :messages (:sent 1 :of 1 :shortened 0)
                 :parts ((:section :system-prompt :role :system :tokens 40)
                         (:section :messages :role :user :tokens 2 :id "msg-1")))))
    (contexture-repl-test-type "/dry-run Well?")
    (contexture-repl-send)
    (contexture-ert-wait-for (get-buffer contexture-repl-dry-run-buffer))
    (let ((asked (car (last (contexture-ert-calls 'chat)))))
      (should (plist-get asked :dry-run))
      (should (equal (plist-get asked :content) "Well?")))
    (with-current-buffer contexture-repl-dry-run-buffer
      (should (string-match-p "42 of 8,192 tokens (0 %), 1 of 1 message sent\n\n +40  system-prompt +system
 +2  messages +user +msg-1\n\nsystem: be good"
                              (buffer-string))))
    (should-not (contexture-repl-test-log))))

(ert-deftest contexture-repl-command-dry-run-lays-json-out ()
  (contexture-repl-test-with '(("A1"))
    (contexture-repl-test-type "/dry-run Well?")
    (contexture-repl-send)
    (contexture-ert-wait-for (get-buffer contexture-repl-dry-run-buffer))
    (with-current-buffer contexture-repl-dry-run-buffer
      (should (string-match-p "^ +\"content\": \"Well\\?\",?$" (buffer-string))))))

(ert-deftest contexture-repl-command-dry-run-without-a-provider-loses-nothing ()
  (contexture-repl-test-with nil
    (contexture-repl-test-send "/dry-run Well?")
    (should (string-search "No model is set up yet" (contexture-repl-test-shown)))
    (should-not (string-search "Error:" (contexture-repl-test-shown)))
    (should (equal (contexture-repl--text) "Well?"))))

(ert-deftest contexture-repl-commands-complete-with-what-they-do ()
  (contexture-repl-test-with nil
    (contexture-repl-test-type "/c")
    (pcase-let ((`(,names . ,annotate) (contexture-repl-input-tests--completions)))
      (should (equal (sort names #'string<) '("checkpoint" "clear" "context")))
      (should (equal (funcall annotate "checkpoint")
                     " WHY  take a checkpoint to come back to")))
    (insert "x y")
    (should-not (contexture-repl--complete))
    (contexture-repl--set-text "what is /c")
    (should-not (contexture-repl--complete))))

(ert-deftest contexture-repl-commands-complete-what-they-take ()
  (contexture-repl-test-with nil
    (contexture-ert-wait-for contexture-repl--templates)
    (contexture-repl-test-type "/template go")
    (should (equal (car (contexture-repl-input-tests--completions)) '("goal-oriented")))
    (should-not (member "explain" contexture-repl--templates))
    (setq contexture-repl--items '((:id "ctx-1" :metadata (:filename "/x/a.el"))))
    (contexture-repl--set-text "/drop ")
    (should (equal (car (contexture-repl-input-tests--completions)) '("a.el")))
    (contexture-test-file "notes.txt" "note")
    (setq default-directory contexture-ert-directory)
    (contexture-repl--set-text "/add no")
    (should (member "notes.txt" (car (contexture-repl-input-tests--completions))))
    (contexture-repl--set-text "/hel")
    (contexture-repl--command-chosen "add" 'finished)
    (should (equal (contexture-repl--text) "/hel "))))

;;;; Windows

(defmacro contexture-repl-input-tests--elsewhere (&rest body)
  "Run BODY in this buffer while its window is shown, but is not selected."
  (declare (indent 0) (debug t))
  `(let ((session (current-buffer)))
     (save-window-excursion
       (delete-other-windows)
       (set-window-buffer (selected-window) session)
       (goto-char (point-max))
       (set-window-buffer (select-window (split-window)) (get-buffer-create " *elsewhere*"))
       (with-current-buffer session ,@body))))

(ert-deftest contexture-repl-context-line-leaves-what-is-written-in-another-window ()
  (contexture-repl-test-with nil
    (contexture-repl-test-type "my precious draft")
    (contexture-repl-input-tests--elsewhere
      (contexture-request 'add-context (list :manager contexture-manager :content "one"))
      (contexture-ert-wait-for (string-search "1 item" (contexture-repl-test-context)))
      (contexture-repl--resized (get-buffer-window session))
      (should (equal (contexture-repl--text) "my precious draft"))
      (should (= (window-point (get-buffer-window session)) (point-max))))))

(ert-deftest contexture-repl-asking-for-the-width-moves-no-point ()
  (contexture-repl-test-with nil
    (contexture-repl-input-tests--elsewhere
      (goto-char (point-min))
      (contexture-repl--width)
      (should (= (point) (point-min))))))

(ert-deftest contexture-repl-sent-text-longer-than-the-window-leaves-it-full ()
  (contexture-repl-test-with '(("The answer."))
    (delete-other-windows)
    (set-window-buffer (selected-window) (current-buffer))
    (contexture-repl-test-type (mapconcat #'number-to-string (number-sequence 1 100) "\n"))
    (set-window-start nil (- (point-max) 10))
    (contexture-repl-send)
    (should (<= (window-start) contexture-repl--tail))
    (contexture-repl-test-wait)
    (should (<= (window-start) (contexture-repl--message-from
                                (contexture-repl--last :assistant))))))

(ert-deftest contexture-repl-long-text-keeps-its-place-in-the-window ()
  (contexture-repl-test-with nil
    (delete-other-windows)
    (set-window-buffer (selected-window) (current-buffer))
    (contexture-repl-test-type (mapconcat #'number-to-string (number-sequence 1 100) "\n"))
    (goto-char contexture-repl--input)
    (forward-line 20)
    (let ((start (point)))
      (set-window-start nil start)
      (contexture-repl--show-end)
      (should (= (window-start) start)))))

(provide 'contexture-repl-input-tests)
;;; contexture-repl-input-tests.el ends here
