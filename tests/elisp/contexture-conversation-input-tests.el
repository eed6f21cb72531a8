;;; contexture-conversation-input-tests.el --- Tests of what is written  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The text behind the prompt, its history, its undo, the commands behind
;; a slash, and the file that keeps what would be lost.

;;; Code:

(require 'contexture-conversation-test-helper)

(defmacro contexture-conversation-input-tests--as-new-emacs (&rest body)
  "Run BODY with nothing in memory of what was said."
  (declare (indent 0) (debug t))
  `(let ((contexture-conversation--history nil)
         (contexture-conversation--new-history nil)
         (contexture-conversation--read nil))
     ,@body))

(defun contexture-conversation-input-tests--completions ()
  "Return what can be completed at point, and the function that annotates it."
  (pcase-let ((`(,start ,end ,table . ,properties) (contexture-conversation--complete)))
    (cons (all-completions (buffer-substring-no-properties start end) table)
          (plist-get properties :annotation-function))))

(ert-deftest contexture-conversation-completion-says-that-nothing-matches ()
  (contexture-conversation-test-with nil
    (dolist (text '("/nix" "/notes nix"))
      (contexture-conversation--set-text text)
      (should (string-search "No match"
                             (cl-letf* ((said "")
                                        ((symbol-function 'ding) #'ignore)
                                        ((symbol-function 'minibuffer-message)
                                         (lambda (text &rest _) (setq said text))))
                               (completion-at-point)
                               said))))
    (contexture-conversation--set-text "@nix")
    (contexture-test-message "^No file, symbol or item matches @nix"
      (let ((this-command 'completion-at-point))
        (completion-at-point)))))

;;;; Text

;; Emacs takes seconds to display such lines at each key, and minutes if they are
;; written from right to left.
(ert-deftest contexture-conversation-displays-a-part-of-long-lines-at-the-prompt ()
  (contexture-conversation-test-with '(("A"))
    (cl-flet ((shown ()
                (let ((shown 0) (position (marker-position contexture-conversation--input)))
                  (while (< position (point-max))
                    (let ((next (next-single-char-property-change position 'display)))
                      (unless (get-char-property position 'display)
                        (cl-incf shown (- next position)))
                      (setq position next)))
                  shown)))
      (let ((hebrew (apply #'concat (make-list 10000 "\u05d0\u05d1\u05d2 "))))
        (dolist (text (list (make-string 1000000 ?a) hebrew (concat "a\n" hebrew "\nb")))
          (contexture-conversation--set-text text)
          (should (< 400 (shown) 5000))
          (should (equal text (contexture-conversation--text)))
          (goto-char (point-max))
          (insert "x")
          (should (< 400 (shown) 5000)))
        (contexture-conversation--set-text (concat hebrew "end"))
        (contexture-conversation-send)
        (contexture-conversation-test-wait)
        (should (equal (plist-get (car (last (llm-ert-calls 'chat))) :content)
                       (concat hebrew "end"))))
      (dolist (text (list (make-string 4000 ?a) (make-string 900 ?\u05d0)
                          (apply #'concat (make-list 900 "a b\n"))))
        (contexture-conversation--set-text text)
        (should (= (length text) (shown)))))))

(ert-deftest contexture-conversation-takes-lines-and-sends-them-as-one ()
  (contexture-conversation-test-with '(("A"))
    (contexture-conversation-test-type "one")
    (contexture-conversation-newline)
    (insert "two")
    (contexture-conversation-send)
    (contexture-conversation-test-wait)
    (should (equal (plist-get (car (last (llm-ert-calls 'chat))) :content) "one\ntwo"))))

(ert-deftest contexture-conversation-shows-what-is-hidden-at-the-prompt ()
  "Else the user would send what was not shown."
  (contexture-conversation-test-with nil
    (contexture-request 'remember '(:content "the port\U000e0041 is \u202e8080\u200b"))
    (cl-flet ((hidden ()
                (cl-loop for position from contexture-conversation--input below (point-max)
                         when (get-text-property position 'display)
                         collect (char-after position))))
      (contexture-conversation--do-memories "port")
      (llm-ert-wait-for (string-search "8080" (contexture-conversation--text)))
      (should (equal '(#xe0041 #x202e #x200b) (hidden)))
      (should (string-search "the port\U000e0041 is \u202e8080\u200b" (contexture-conversation--text)))
      (contexture-conversation--set-text "a\u2066b")
      (should (equal '(#x2066) (hidden)))
      ;; What is yanked, and typed beside it.
      (contexture-conversation--set-text "")
      (kill-new "x\u202ey")
      (yank)
      (insert-and-inherit "z")
      (goto-char (- (point-max) 2))
      (insert-and-inherit "w")
      (should (equal "x\u202ewyz" (contexture-conversation--text)))
      (should (equal '(#x202e) (hidden)))
      ;; What belongs there is shown as it is, also while it is typed.
      (contexture-conversation--set-text "")
      (dolist (char (append "می\u200cروم" nil))
        (insert char))
      (should-not (hidden))
      (delete-char -1) (delete-char -1) (delete-char -1)
      (should (equal '(#x200c) (hidden))))))

(ert-deftest contexture-conversation-what-is-said-cannot-be-edited ()
  (contexture-conversation-test-with '(("A"))
    (contexture-conversation-test-send "Q")
    (dolist (position (list (point-min) (1+ (point-min)) (1- contexture-conversation--tail)
                            contexture-conversation--tail (1- contexture-conversation--input)))
      (goto-char position)
      (should-error (insert "x") :type 'text-read-only))
    (goto-char contexture-conversation--input)
    (insert "x")
    (should (equal (contexture-conversation--text) "x"))))

(ert-deftest contexture-conversation-typing-above-the-prompt-goes-behind-it ()
  (contexture-conversation-test-with '(("A"))
    (contexture-conversation-test-send "Q")
    (goto-char (point-min))
    (let ((this-command 'self-insert-command))
      (run-hooks 'pre-command-hook))
    (should (= (point) (point-max)))
    (goto-char (point-min))
    (let ((this-command 'forward-char))
      (run-hooks 'pre-command-hook))
    (should (= (point) (point-min)))
    (contexture-conversation-send)
    (should (= (point) (point-max)))))

(ert-deftest contexture-conversation-undo-knows-only-what-is-written ()
  (contexture-conversation-test-with '(("A1 " "long") ("A2"))
    (contexture-conversation-test-send "Q1")
    (should-not buffer-undo-list)
    (contexture-conversation-test-type "hello")
    (undo-boundary)
    (insert " world")
    (undo-boundary)
    (delete-region (- (point) 3) (point))
    (undo-boundary)
    (contexture-conversation--note "Something above, of some length")
    (setq contexture-conversation--items '((:id "ctx-1" :tokens 7)))
    (contexture-conversation--draw-context)
    (setq last-command 'other)
    (undo)
    (should (equal (contexture-conversation--text) "hello world"))
    (setq last-command 'undo)
    (undo-more 1)
    (should (equal (contexture-conversation--text) "hello"))
    (should (string-search "Something above" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-copied-text-is-what-was-said ()
  (contexture-conversation-test-with (list (list (make-string 9000 ?x)))
    (contexture-conversation-test-send "Q")
    (goto-char (point-min))
    (search-forward "xxx")
    (let ((text (filter-buffer-substring (match-beginning 0) contexture-conversation--tail)))
      (should (string-prefix-p (concat (make-string 9000 ?x) "\n") text))
      (should-not (text-properties-at 0 text)))))

;;;; History

(ert-deftest contexture-conversation-history-goes-back-and-forth ()
  (contexture-conversation-test-with '(("A1") ("A2"))
    (contexture-conversation-test-send "Q1")
    (contexture-conversation-test-send "Q2")
    (contexture-conversation-test-type "unfinished")
    (contexture-conversation-previous-input 1)
    (should (equal (contexture-conversation--text) "Q2"))
    (contexture-conversation-previous-input 1)
    (should (equal (contexture-conversation--text) "Q1"))
    (contexture-test-user-error "no older entry" (contexture-conversation-previous-input 1))
    (contexture-conversation-next-input 2)
    (should (equal (contexture-conversation--text) "unfinished"))
    (contexture-test-user-error "no newer entry" (contexture-conversation-next-input 1))
    (contexture-conversation-search-input "Q1")
    (should (equal (contexture-conversation--text) "Q1"))
    (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) "")))
      (call-interactively #'contexture-conversation-search-input))
    (should (equal (contexture-conversation--text) "Q1"))))

(ert-deftest contexture-conversation-history-outlives-emacs-and-only-the-user-reads-it ()
  (contexture-conversation-test-with '(("A1"))
    (contexture-conversation-test-send "Q1 \"ü\"\nline")
    (should (= (file-modes contexture-conversation-history-file) #o600))
    (contexture-conversation-input-tests--as-new-emacs
      (contexture-conversation-previous-input 1)
      (should (equal (contexture-conversation--text) "Q1 \"ü\"\nline")))))

(ert-deftest contexture-conversation-history-has-what-another-emacs-said ()
  (contexture-conversation-test-with '(("A1"))
    (contexture-conversation-input-tests--as-new-emacs
      (contexture-conversation--remember "other")
      (contexture-conversation--save))
    (contexture-conversation-test-send "mine")
    (should (equal (plist-get (contexture-conversation--file-contents) :history)
                   '("mine" "other")))))

(ert-deftest contexture-conversation-history-has-each-text-once-and-an-end ()
  (let ((contexture-conversation-history-length 2))
    (should (equal (contexture-conversation--with-newest "a" '("b" "a")) '("a" "b")))
    (should (equal (contexture-conversation--with-newest "c" '("a" "b")) '("c" "a")))))

(ert-deftest contexture-conversation-history-survives-a-file-that-is-none ()
  (contexture-conversation-test-with '(("A1"))
    (dolist (text '("" "(((" "42" "(1 2)" "#1=(#1#)"))
      (llm-ert-write-file "history" text)
      (contexture-conversation-input-tests--as-new-emacs
        (contexture-test-user-error "no older entry" (contexture-conversation-previous-input 1))))
    (contexture-conversation-test-send "Q1")
    (should (equal (plist-get (contexture-conversation--file-contents) :history) '("Q1")))))

(ert-deftest contexture-conversation-history-can-be-kept-nowhere ()
  (contexture-conversation-test-with '(("A1"))
    (let ((contexture-conversation-history-file nil))
      (contexture-conversation-test-send "Q1")
      (contexture-conversation-previous-input 1)
      (should (equal (contexture-conversation--text) "Q1")))))

(ert-deftest contexture-conversation-history-that-cannot-be-written-stops-nothing ()
  (contexture-conversation-test-with '(("A1"))
    (let ((contexture-conversation-history-file "/proc/no/such/file"))
      (contexture-conversation-test-send "Q1")
      (should (string-search "A1" (contexture-conversation-test-shown))))))

(ert-deftest contexture-conversation-draft-is-kept-when-emacs-rests ()
  (contexture-conversation-test-with nil
    (contexture-conversation-test-type "not yet")
    (should contexture-conversation--idle-timer)
    (contexture-conversation--idle (current-buffer))
    (should (equal (plist-get (contexture-conversation--file-contents) :drafts)
                   '(("talk" . "not yet"))))
    (contexture-conversation--set-text "")
    (contexture-conversation--keep-all)
    (should-not (plist-get (contexture-conversation--file-contents) :drafts))))

;;;; Commands behind a slash

(ert-deftest contexture-conversation-command-help-lists-all ()
  (contexture-conversation-test-with nil
    (contexture-conversation-test-send "/help")
    (dolist (entry contexture-conversation--commands)
      (should (string-search (concat "/" (car entry)) (contexture-conversation-test-shown))))
    (should (equal (contexture-conversation--text) ""))
    (llm-ert-should-not-called 'chat)))

(ert-deftest contexture-conversation-command-that-is-none-stays ()
  (contexture-conversation-test-with nil
    (contexture-conversation-test-type "/nonsense x")
    (contexture-test-user-error "no command /nonsense" (contexture-conversation-send))
    (should (equal (contexture-conversation--text) "/nonsense x"))))

(ert-deftest contexture-conversation-command-is-no-path ()
  (should (contexture-conversation--command-p "/add x"))
  (should (contexture-conversation--command-p "/help\n"))
  (should-not (contexture-conversation--command-p "/usr/bin/env is what?"))
  (should-not (contexture-conversation--command-p "// comment"))
  (should-not (contexture-conversation--command-p "what is /add")))

(ert-deftest contexture-conversation-commands-add-drop-clear-undo ()
  (contexture-conversation-test-with nil
    (let ((file (contexture-test-file "notes.txt" "note"))
          (count (lambda () (length (contexture-test-items contexture-context)))))
      (contexture-conversation-test-type (concat "/add " file))
      (contexture-conversation-send)
      (llm-ert-wait-for (string-search "notes.txt" (contexture-conversation-test-context)))
      (contexture-conversation-test-type "/drop nothing")
      (contexture-test-user-error "has no item called" (contexture-conversation-send))
      (should (equal (contexture-conversation--text) "/drop nothing"))
      (contexture-conversation--set-text "/drop notes.txt")
      (contexture-conversation-send)
      (llm-ert-wait-for (= (funcall count) 0))
      (contexture-conversation-test-type "/undo")
      (contexture-conversation-send)
      (llm-ert-wait-for (= (funcall count) 1))
      (contexture-conversation-test-type "/clear")
      (contexture-conversation-send)
      (llm-ert-wait-for (= (funcall count) 0)))))

(ert-deftest contexture-conversation-command-context-lists-the-items ()
  (contexture-conversation-test-with nil
    (contexture-request 'add-context (list :manager contexture-context :content "one"))
    (contexture-conversation-test-type "/context")
    (contexture-conversation-send)
    (should (get-buffer contexture-list-buffer))))

(ert-deftest contexture-conversation-command-stats-tells-numbers ()
  (contexture-conversation-test-with '(("A1"))
    (contexture-conversation-test-send "Q1")
    (contexture-conversation-test-send "/stats")
    (should (string-match-p "2 messages sent with [0-9]+ tokens of [0-9]+ ([0-9.]+ %)"
                            (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-command-stats-tells-what-the-header-tells ()
  (contexture-conversation-test-with '(("A1"))
    (contexture-request 'add-item (list :manager contexture-context :type "text"
                                        :content "one two three"))
    (contexture-conversation-test-send "Q1")
    (cl-flet ((header () (contexture-count--text
                          (plist-get contexture-conversation--session :id))))
      (llm-ert-wait-for (string-search "2 of 2 messages sent" (header)))
      (pcase (split-string (string-replace "," "" (header)))
        (`(,tokens "of" ,limit . ,_)
         (contexture-conversation-test-send "/stats")
         (should (string-search (format "2 messages sent with %s tokens of %s (" tokens limit)
                                (contexture-conversation-test-shown))))))))

(ert-deftest contexture-conversation-command-back-takes-a-number ()
  (dolist (name '("1" "turn 1"))
    (contexture-conversation-test-with '(("A1") ("A2"))
      (contexture-conversation-test-send "Q1")
      (contexture-conversation-test-send "Q2")
      (contexture-conversation-test-type (concat "/back " name))
      (contexture-conversation-send)
      (llm-ert-wait-for (not (string-search "Q2" (contexture-conversation-test-shown))))
      (should (equal (mapcar #'cadr (contexture-conversation-test-log)) '("Q1" "A1"))))))

(ert-deftest contexture-conversation-command-back-says-how-to-undo-it ()
  (contexture-conversation-test-with '(("A1") ("A2"))
    (contexture-conversation-test-send "Q1")
    (contexture-conversation-test-send "Q2")
    (contexture-test-message "Conversation talk went back: 1 turn, 2 messages taken back; \\(?:C-c x n u\
\\|M-x contexture-conversation-undo\\) undoes this"
      (contexture-conversation-test-type "/back Before: Q2")
      (contexture-conversation-send))
    ;; What it names undoes that, even if another conversation is current.
    (contexture-request 'open-session '(:name "other"))
    (contexture-test-message "Going back in conversation talk is undone: 1 turn restored"
      (contexture-conversation-undo))
    (should (equal (mapcar #'cadr (contexture-conversation-test-log)) '("Q1" "A1" "Q2" "A2")))))

(ert-deftest contexture-conversation-context-counts-no-covered-item ()
  (contexture-conversation-test-with nil
    (setq contexture-conversation--items '((:id "ctx-1" :tokens 5)
                                           (:id "ctx-2" :tokens 3 :covered-by "ctx-1")))
    (should (string-suffix-p "2 items, 5 tokens" (contexture-conversation--context-text)))))

(ert-deftest contexture-conversation-command-back-takes-the-question ()
  (contexture-conversation-test-with '(("A1") ("A2"))
    (contexture-conversation-test-send "Q1")
    (contexture-conversation-name-turn "before two")
    (llm-ert-wait-for (contexture--ask 'list-operations '(:session "talk" :checkpoints t)))
    (contexture-conversation-test-send "Q2")
    (contexture-conversation-test-type "/back before t")
    (should (equal (car (contexture-conversation-input-tests--completions)) '("before two")))
    (insert "wo")
    (contexture-conversation-send)
    (llm-ert-wait-for (not (string-search "Q2" (contexture-conversation-test-shown))))
    (should (equal (contexture-conversation--text) ""))
    (should (equal (mapcar #'cadr (contexture-conversation-test-log)) '("Q1" "A1")))))

(ert-deftest contexture-conversation-command-that-fails-later-is-given-back ()
  (contexture-conversation-test-with '(("A1"))
    (dolist (text '("/back nowhere" "/back 99"))
      (contexture-conversation--set-text text)
      (contexture-conversation-send)
      (should (equal (contexture-conversation--text) ""))
      (llm-ert-wait-for (equal (contexture-conversation--text) text)))
    (should (string-search "Error: No turn is called nowhere;"
                           (contexture-conversation-test-shown)))
    (contexture-conversation--set-text "")
    (contexture-conversation--show-problem '(:message "of something else"))
    (should (equal (contexture-conversation--text) ""))))

(ert-deftest contexture-conversation-commands-notes-and-model ()
  (contexture-conversation-test-with nil
    (contexture-conversation-test-send "/notes goal-oriented")
    (contexture-conversation-test-send "/model large")
    (should (equal (mapcar (lambda (key) (plist-get contexture-conversation--settings key))
                           '(:template :manage :model :provider))
                   '("goal-oriented" t "large" nil)))
    (contexture-conversation-test-send "/notes off")
    (should-not (plist-get contexture-conversation--settings :manage))))

(ert-deftest contexture-conversation-command-conversation-switches ()
  (contexture-conversation-test-with nil
    (contexture-conversation-test-type "/conversation other")
    (contexture-conversation-send)
    (should (equal (buffer-name) "*contexture: other*"))))

(ert-deftest contexture-conversation-command-explain-shows-the-window ()
  (contexture-conversation-test-with '(("A1"))
    (contexture-conversation-test-send "Q1")
    (contexture-request 'build-context '(:session "talk"))
    (contexture-conversation-test-type "/explain")
    (contexture-conversation-send)
    (llm-ert-wait-for (get-buffer "*contexture: explain*"))))

(ert-deftest contexture-conversation-command-explain-is-about-this-session ()
  (contexture-conversation-test-with nil
    (contexture-request 'build-context '(:session "talk"))
    (contexture-request 'open-session '(:name "other"))
    (dolist (explain (list (lambda () (contexture-conversation-test-type "/explain")
                             (contexture-conversation-send))
                           (lambda () (call-interactively #'contexture-explain))))
      (funcall explain)
      (llm-ert-wait-for (get-buffer "*contexture: explain*"))
      (with-current-buffer "*contexture: explain*"
        (should (string-match-p "conversation talk," header-line-format))
        (kill-buffer)))))

(ert-deftest contexture-conversation-command-dry-run-shows-what-would-be-sent ()
  (contexture-conversation-test-played
      '((result (:payload "system: be good" :tokens 42 :max-tokens 8192
                 :messages (:sent 1 :of 1 :shortened 0)
                 :parts ((:section :system-prompt :role :system :tokens 40)
                         (:section :messages :role :user :tokens 2 :id "msg-1")))))
    (contexture-conversation-test-type "/preview Well?")
    (contexture-conversation-send)
    (llm-ert-wait-for (get-buffer contexture-conversation-preview-buffer))
    (let ((asked (car (last (llm-ert-calls 'chat)))))
      (should (plist-get asked :dry-run))
      (should (equal (plist-get asked :content) "Well?")))
    (with-current-buffer contexture-conversation-preview-buffer
      (should (string-match-p "42 of 8,192 tokens (0 %), 1 of 1 message sent\n\n +40  instructions +system
 +2  messages +user +msg-1\n\nsystem: be good"
                              (buffer-string))))
    (should-not (contexture-conversation-test-log))))

(ert-deftest contexture-conversation-command-dry-run-lays-json-out ()
  (contexture-conversation-test-with '(("A1"))
    (contexture-conversation-test-type "/preview Well?")
    (contexture-conversation-send)
    (llm-ert-wait-for (get-buffer contexture-conversation-preview-buffer))
    (with-current-buffer contexture-conversation-preview-buffer
      (should (string-match-p "^ +\"content\": \"Well\\?\",?$" (buffer-string))))))

(ert-deftest contexture-conversation-command-dry-run-without-a-provider-loses-nothing ()
  (contexture-conversation-test-with nil
    (contexture-conversation-test-send "/preview Well?")
    (should (string-search "No model is set up yet" (contexture-conversation-test-shown)))
    (should-not (string-search "Error:" (contexture-conversation-test-shown)))
    (should (equal (contexture-conversation--text) "Well?"))))

(ert-deftest contexture-conversation-commands-complete-with-what-they-do ()
  (contexture-conversation-test-with nil
    (contexture-conversation-test-type "/c")
    (pcase-let ((`(,names . ,annotate) (contexture-conversation-input-tests--completions)))
      (should (equal (sort names #'string<) '("clear" "context" "conversation")))
      (should (equal (funcall annotate "conversation")
                     " NAME  switch to a conversation, or start one")))
    (insert "x y")
    (should-not (contexture-conversation--complete))
    (contexture-conversation--set-text "what is /c")
    (should-not (contexture-conversation--complete))))

(ert-deftest contexture-conversation-commands-complete-what-they-take ()
  (contexture-conversation-test-with nil
    (llm-ert-wait-for contexture-conversation--templates)
    (contexture-conversation-test-type "/notes go")
    (should (equal (car (contexture-conversation-input-tests--completions)) '("goal-oriented")))
    (should-not (member "explain" contexture-conversation--templates))
    (setq contexture-conversation--items '((:id "ctx-1" :metadata (:filename "/x/a.el"))))
    (contexture-conversation--set-text "/drop ")
    (should (equal (car (contexture-conversation-input-tests--completions)) '("a.el")))
    (contexture-test-file "notes.txt" "note")
    (setq default-directory llm-ert-directory)
    (contexture-conversation--set-text "/add no")
    (should (member "notes.txt" (car (contexture-conversation-input-tests--completions))))
    (contexture-conversation--set-text "/hel")
    (contexture-conversation--command-chosen "add" 'finished)
    (should (equal (contexture-conversation--text) "/hel "))))

;;;; Windows

(defmacro contexture-conversation-input-tests--elsewhere (&rest body)
  "Run BODY in this buffer while its window is shown, but is not selected."
  (declare (indent 0) (debug t))
  `(let ((session (current-buffer)))
     (save-window-excursion
       (delete-other-windows)
       (set-window-buffer (selected-window) session)
       (goto-char (point-max))
       (set-window-buffer (select-window (split-window)) (get-buffer-create " *elsewhere*"))
       (with-current-buffer session ,@body))))

(ert-deftest contexture-conversation-context-line-leaves-what-is-written-in-another-window ()
  (contexture-conversation-test-with nil
    (contexture-conversation-test-type "my precious draft")
    (contexture-conversation-input-tests--elsewhere
      (contexture-request 'add-context (list :manager contexture-context :content "one"))
      (llm-ert-wait-for (string-search "1 item" (contexture-conversation-test-context)))
      (contexture-conversation--resized (get-buffer-window session))
      (should (equal (contexture-conversation--text) "my precious draft"))
      (should (= (window-point (get-buffer-window session)) (point-max))))))

(ert-deftest contexture-conversation-asking-for-the-width-moves-no-point ()
  (contexture-conversation-test-with nil
    (contexture-conversation-input-tests--elsewhere
      (goto-char (point-min))
      (contexture-conversation--width)
      (should (= (point) (point-min))))))

(ert-deftest contexture-conversation-sent-text-longer-than-the-window-leaves-it-full ()
  (contexture-conversation-test-with '(("The answer."))
    (delete-other-windows)
    (set-window-buffer (selected-window) (current-buffer))
    (contexture-conversation-test-type (mapconcat #'number-to-string (number-sequence 1 100) "\n"))
    (set-window-start nil (- (point-max) 10))
    (contexture-conversation-send)
    (should (<= (window-start) contexture-conversation--tail))
    (contexture-conversation-test-wait)
    (should (<= (window-start) (contexture-conversation--message-from
                                (contexture-conversation--last :assistant))))))

(ert-deftest contexture-conversation-long-text-keeps-its-place-in-the-window ()
  (contexture-conversation-test-with nil
    (delete-other-windows)
    (set-window-buffer (selected-window) (current-buffer))
    (contexture-conversation-test-type (mapconcat #'number-to-string (number-sequence 1 100) "\n"))
    (goto-char contexture-conversation--input)
    (forward-line 20)
    (let ((start (point)))
      (set-window-start nil start)
      (contexture-conversation--show-end)
      (should (= (window-start) start)))))

(provide 'contexture-conversation-input-tests)
;;; contexture-conversation-input-tests.el ends here
