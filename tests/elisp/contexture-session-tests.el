;;; contexture-session-tests.el --- Tests of the commands for conversations  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Conversations by the commands that a user has for them, with a real server
;; whose clock stands still.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-session)
(require 'contexture-menu)

(defmacro contexture-session-tests--with (&rest body)
  "Run BODY with a server of its own, whose clock stands still."
  (declare (indent 0) (debug t))
  `(let ((contexture-ert-server-command contexture-test-binary))
     (contexture-ert-with-server
       :tokenizer nil
       (save-window-excursion
         (unwind-protect (progn ,@body)
           (contexture-session-mode-line-mode -1))))))

(defmacro contexture-session-tests--answering (input &rest body)
  "Run BODY with INPUT, strings, as the answers to its questions.
An answer that is nil takes the default."
  (declare (indent 1) (debug t))
  `(let ((answers ,input))
     (cl-letf (((symbol-function 'completing-read)
                (lambda (_prompt table &optional predicate match _initial _history default
                         &rest _)
                  (let ((answer (or (pop answers) default "")))
                    (when (eq match t)
                      (should (member answer (all-completions "" table predicate))))
                    answer)))
               ((symbol-function 'read-string)
                (lambda (_prompt &optional _initial _history default &rest _)
                  (or (pop answers) default "")))
               ((symbol-function 'read-number)
                (lambda (_prompt &optional default) (or (pop answers) default))))
       ,@body)))

(defun contexture-session-tests--fill (name &rest contents)
  "Make the conversation NAME, in which CONTENTS were said in turn."
  (contexture-request 'open-session (list :name name))
  (when contents
    (contexture-request
     'add-message
     (list :messages
           (cl-loop for text in contents
                    for role = :user then (if (eq role :user) :assistant :user)
                    collect (list :role role :content text))))))

(defun contexture-session-tests--long (count)
  "Return COUNT texts of some length."
  (cl-loop for number from 1 to count
           collect (format "step %d about src/file%d.rs: %s" number number
                           (mapconcat #'identity (make-list 20 "word") " "))))

(defun contexture-session-tests--current ()
  "Return the current conversation."
  (contexture-request 'current-session))

(defun contexture-session-tests--in-view ()
  "Return how many messages of the current conversation are in view."
  (plist-get (contexture-request 'context-stats) :items))

;;;; Opening and naming

(ert-deftest contexture-session-open-begins-a-session ()
  (contexture-session-tests--with
    (contexture-test-message "^Started conversation work, which has the items of "
      (contexture-session-tests--answering '("work")
        (call-interactively #'contexture-session-open)))
    (should (equal (plist-get (contexture-session-tests--current) :session) "work"))))

(ert-deftest contexture-session-open-goes-back-to-one ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "one" "hello" "yes?")
    (contexture-session-tests--fill "two")
    (contexture-test-message "Conversation one is open (2 messages, [0-9]+ tokens)"
      (contexture-session-open "one"))
    (should (equal (plist-get (contexture-session-tests--current) :session) "one"))))

(ert-deftest contexture-session-open-refuses-an-empty-name ()
  (contexture-session-tests--with
    (contexture-session-tests--answering '("  ")
      (contexture-test-user-error "No conversation was chosen"
        (call-interactively #'contexture-session-open)))))

(ert-deftest contexture-session-new-lets-the-server-name-it ()
  (contexture-session-tests--with
    (contexture-test-message "Started conversation conversation-1"
      (contexture-session-tests--answering '("")
        (call-interactively #'contexture-session-new)))))

(ert-deftest contexture-session-new-can-show-a-buffers-context ()
  (contexture-session-tests--with
    (with-temp-buffer
      (rename-buffer "notes.txt")
      (contexture-test-message "Started conversation n, which has the items of buffer notes.txt"
        (let ((current-prefix-arg '(4)))
          (contexture-session-tests--answering '("n")
            (call-interactively #'contexture-session-new))))
      (should (equal (plist-get (contexture-session-tests--current) :manager)
                     "notes.txt")))))

(ert-deftest contexture-session-names-can-be-of-any-script ()
  (contexture-session-tests--with
    (contexture-test-message "Started conversation Überblick 会話 🎉"
      (contexture-session-new "Überblick 会話 🎉"))
    (contexture-test-message "Added msg-1 to conversation Überblick 会話 🎉"
      (contexture-session-add-message "grüße"))
    (contexture-session-transcript nil)
    (contexture-ert-wait-for (get-buffer "*contexture: conversation Überblick 会話 🎉*"))
    (with-current-buffer "*contexture: conversation Überblick 会話 🎉*"
      (should (string-match-p "grüße" (buffer-string))))))

(ert-deftest contexture-session-switch-wants-one-that-exists ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "one" "a")
    (contexture-session-tests--fill "two" "b")
    (contexture-test-message "Conversation one is open"
      (contexture-session-tests--answering '("one")
        (call-interactively #'contexture-session-switch)))
    (contexture-test-message "no session \"none\""
      (contexture-session-switch "none"))))

(ert-deftest contexture-session-switch-says-that-there-is-none ()
  (contexture-session-tests--with
    (contexture-test-user-error "There is no conversation yet; \\(?:M-x contexture-session-\\|C-c x n \\)[-a-zA-Z]+"
      (call-interactively #'contexture-session-switch))))

(ert-deftest contexture-session-completion-tells-of-each ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "one" "a")
    (contexture-session-tests--fill "two" "b" "c")
    (let (table)
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (_ candidates &rest _) (setq table candidates) "two")))
        (contexture-session--read "Conversation"))
      (should (equal (all-completions "" table) '("two" "one")))
      (let* ((metadata (completion-metadata "" table nil))
             (annotate (completion-metadata-get metadata 'annotation-function)))
        (should (eq (completion-metadata-get metadata 'category) 'contexture-session))
        (should (string-match-p "2 messages, 2 tokens, .* ago, current"
                                (funcall annotate "two")))
        (should (string-match-p "1 message, 1 token, .* ago\\'"
                                (funcall annotate "one")))))))

(ert-deftest contexture-session-rename-keeps-all-of-it ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "old" "a" "b")
    (contexture-test-message "The conversation is now called new"
      (contexture-session-tests--answering '("old" "new")
        (call-interactively #'contexture-session-rename)))
    (should (equal (plist-get (contexture-session-tests--current) :session) "new"))
    (should (equal (plist-get (contexture-session-tests--current) :messages) 2))
    (contexture-test-user-error "needs a name" (contexture-session-rename "new" " "))))

(ert-deftest contexture-session-deleted-ones-come-back ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work" "a" "b")
    (contexture-test-message "Deleted conversation work (2 messages.*; \\(?:M-x\\|C-c\\) .* brings it back"
      (contexture-session-tests--answering '("work")
        (call-interactively #'contexture-session-delete)))
    (should-not (contexture-request 'list-sessions))
    (contexture-test-message "Conversation work is back (2 messages"
      (contexture-session-tests--answering '(nil)
        (call-interactively #'contexture-session-restore)))
    (should (= 1 (length (contexture-request 'list-sessions))))
    (contexture-test-user-error "There are no deleted conversations"
      (call-interactively #'contexture-session-restore))))

(ert-deftest contexture-session-restore-tells-two-of-one-name-apart ()
  (contexture-session-tests--with
    (dotimes (_ 2)
      (contexture-session-tests--fill "work" "a")
      (contexture-request 'delete-session '(:session "work")))
    (let ((names (mapcar #'car (contexture-session--name-entries
                                (contexture-request 'list-sessions '(:deleted t))))))
      (should (= 2 (length (delete-dups names))))
      (should (cl-some (lambda (name) (string-match-p "\\`work <ses-[12]>\\'" name))
                       names)))))

(ert-deftest contexture-session-commands-say-how-to-open-one ()
  (contexture-session-tests--with
    (contexture-test-message "no conversation is open; \\(?:M-x contexture-session-\\|C-c x n \\)[-a-zA-Z]+ opens one"
      (contexture-session-add-message "hello"))
    (pcase-dolist (`(,session . ,noted) '((nil . t) ("none" . nil)))
      (let ((problem (should-error (contexture-request 'get-messages (list :session session))
                                   :type 'contexture-error)))
        ;; Whatever the words of the message are.
        (should (eq noted (contexture-session--none-open-p
                           (list :message "other words" :data (nth 3 problem)))))))))

;;;; Adding

(ert-deftest contexture-session-add-message-asks-for-the-role ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work")
    (contexture-test-message "Added msg-1 to conversation work (1 message,"
      (let ((current-prefix-arg '(4)))
        (contexture-session-tests--answering '("system" "You are terse.")
          (call-interactively #'contexture-session-add-message))))
    (should (eq :system (plist-get (car (contexture-request 'get-messages)) :role)))
    (contexture-test-user-error "empty" (contexture-session-add-message "  "))))

(ert-deftest contexture-session-add-region-adds-the-region ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work")
    (with-temp-buffer
      (insert "one two three")
      (contexture-test-user-error "Mark a region"
        (call-interactively #'contexture-session-add-region))
      (contexture-session-add-region 5 8))
    (contexture-ert-wait-for (contexture-request 'get-messages))
    (should (equal (plist-get (car (contexture-request 'get-messages)) :content)
                   "two"))))

;;;; Checkpoints

(ert-deftest contexture-session-rollback-says-what-it-costs ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work" "a" "b")
    (contexture-test-message "Took chk-1 of conversation work at turn 1"
      (contexture-session-tests--answering '("the refactoring")
        (call-interactively #'contexture-session-checkpoint)))
    (contexture-session-tests--fill "work" "c" "d" "e")
    (contexture-test-message "Conversation work is back at chk-1: 2 turns, 3 messages lost"
      (contexture-session-tests--answering '("chk-1 the refactoring")
        (call-interactively #'contexture-session-rollback)))
    (should (= 2 (length (contexture-request 'get-messages))))
    (contexture-test-message "The rollback of conversation work is undone: 2 turns restored"
      (contexture-session-undo-rollback))
    (should (= 5 (length (contexture-request 'get-messages))))))

(ert-deftest contexture-session-rollback-offers-the-last-checkpoint ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work" "a" "b")
    (contexture-request 'checkpoint '(:message "first"))
    (contexture-session-tests--fill "work" "c" "d")
    (contexture-request 'checkpoint '(:message "second"))
    (should (equal (contexture-session-tests--answering '(nil)
                     (contexture-session--read-checkpoint "Go back to"))
                   "chk-2"))
    (let ((checkpoints (contexture-request 'list-checkpoints)))
      (should (string-match-p "turn 1, .*, loses 1 turn\\'"
                              (contexture-session--checkpoint-text
                               (car checkpoints) 2)))
      (should (string-match-p "loses no turns"
                              (contexture-session--checkpoint-text
                               (cadr checkpoints) 2))))))

(ert-deftest contexture-session-rollback-needs-a-checkpoint ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work" "a")
    (contexture-test-user-error "has no checkpoint; \\(?:M-x contexture-session-\\|C-c x n \\)[-a-zA-Z]+"
      (call-interactively #'contexture-session-rollback))
    (contexture-test-message "no rollback of \"work\" to undo"
      (contexture-session-undo-rollback))))

(ert-deftest contexture-session-checkpoint-tells-when-none-are-kept ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work" "a")
    ;; As the server answers while "versioning" is off.
    (cl-letf (((symbol-function 'contexture-session--call)
               (lambda (_method _params success) (funcall success nil))))
      (contexture-test-message "keeps no checkpoints"
        (contexture-session-checkpoint "")))))

(ert-deftest contexture-session-fork-goes-on-from-a-checkpoint ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work" "a" "b")
    (contexture-request 'checkpoint '(:message "here"))
    (contexture-session-tests--fill "work" "c" "d")
    (contexture-test-message "Conversation other continues from chk-1 (2 messages"
      (let ((current-prefix-arg '(4)))
        (contexture-session-tests--answering '(nil "other")
          (call-interactively #'contexture-session-fork))))
    (should (equal (plist-get (contexture-session-tests--current) :session) "other"))))

;;;; Pruning and summarizing

(ert-deftest contexture-session-prune-is-undone ()
  (contexture-session-tests--with
    (apply #'contexture-session-tests--fill "work" (contexture-session-tests--long 20))
    (contexture-test-message "Pruned [0-9]+ messages of conversation work: [0-9]+ → [0-9]+ tokens"
      (let ((current-prefix-arg 300))
        (call-interactively #'contexture-session-prune)))
    (should (< (contexture-session-tests--in-view) 20))
    (contexture-test-message "Undid the pruning of conversation work"
      (contexture-session-undo))
    (should (= (contexture-session-tests--in-view) 20))
    (contexture-test-message "Nothing to undo" (contexture-session-undo))))

(ert-deftest contexture-session-undo-goes-further-back ()
  (contexture-session-tests--with
    (apply #'contexture-session-tests--fill "work" (contexture-session-tests--long 30))
    (contexture-test-message "Pruned" (contexture-session-prune 700))
    (let ((between (contexture-session-tests--in-view)))
      (contexture-test-message "Pruned" (contexture-session-prune 300))
      (contexture-test-message "Undid" (contexture-session-undo))
      (should (= (contexture-session-tests--in-view) between))
      (contexture-test-message "Undid" (contexture-session-undo))
      (should (= (contexture-session-tests--in-view) 30)))))

(ert-deftest contexture-session-undo-takes-a-rollback-back ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work" "a" "b")
    (contexture-request 'checkpoint)
    (contexture-session-tests--fill "work" "c" "d")
    (contexture-request 'rollback)
    (contexture-test-message "is undone: 1 turn restored" (contexture-session-undo))
    (should (= 4 (length (contexture-request 'get-messages))))
    (contexture-test-message "Nothing to undo" (contexture-session-undo))))

(ert-deftest contexture-session-redo-brings-back-what-was-undone ()
  (contexture-session-tests--with
    (apply #'contexture-session-tests--fill "work" (contexture-session-tests--long 30))
    (contexture-test-message "nothing to redo" (contexture-session-redo))
    (contexture-test-message "Pruned" (contexture-session-prune 300))
    (let ((pruned (contexture-session-tests--in-view)))
      (contexture-test-message "Undid the pruning of conversation work; .* redoes it"
        (contexture-session-undo))
      (let ((contexture-menu--patience 10))
        (contexture-menu--fetch-session-changes))
      (should (equal (contexture-menu--session-redo) "redo: the pruning"))
      (contexture-test-message "Redid the pruning of conversation work; .* undoes it"
        (contexture-session-redo))
      (should (= (contexture-session-tests--in-view) pruned))
      (contexture-session-undo)
      (contexture-session-tests--fill "work" "more")
      (contexture-test-message "nothing to redo" (contexture-session-redo)))))

(ert-deftest contexture-session-prune-says-when-there-is-nothing-to-do ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work" "a")
    (contexture-test-message "Nothing to prune: conversation work has only [0-9]+ tokens"
      (contexture-session-prune))))

(ert-deftest contexture-session-summarize-is-undone ()
  (contexture-session-tests--with
    (apply #'contexture-session-tests--fill "work" (contexture-session-tests--long 40))
    (contexture-test-message "Summarized [0-9]+ messages of conversation work: [0-9,]+ → [0-9,]+"
      (contexture-session-summarize 4))
    (should (< (contexture-session-tests--in-view) 10))
    (with-current-buffer "*contexture: summary*"
      (should (string-match-p "src/file" (buffer-string))))
    (contexture-test-message "Undid the summary of" (contexture-session-undo))
    (should (= 40 (cl-count-if (lambda (it) (plist-get it :in-view))
                               (contexture-request 'get-messages))))))

(ert-deftest contexture-session-summarize-says-why-it-does-not ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work" "a" "b")
    (contexture-test-message "Contexture: " (contexture-session-summarize 1))))

(ert-deftest contexture-session-restore-revision-offers-what-changed-the-view ()
  (contexture-session-tests--with
    (contexture-test-message "no conversation is open"
      (contexture-session-restore-revision 0))
    (apply #'contexture-session-tests--fill "work" (contexture-session-tests--long 20))
    (contexture-test-user-error "Nothing has changed the view"
      (call-interactively #'contexture-session-restore-revision))
    (contexture-request 'prune-context '(:max-tokens 300))
    (contexture-request 'checkpoint)
    (contexture-test-message "Conversation work shows the view of revision 0 again"
      (contexture-session-tests--answering '(nil)
        (call-interactively #'contexture-session-restore-revision)))
    (should (= (contexture-session-tests--in-view) 20))))

;;;; Settings

(ert-deftest contexture-session-configure-shows-value-default-and-range ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work")
    (contexture-test-message "max-tokens of conversation work: 3000, default what the model takes, 256 to"
      (contexture-session-tests--answering '("max-tokens" "3000")
        (call-interactively #'contexture-session-configure)))
    (contexture-test-user-error "max-tokens must be from 256 to 10000000"
      (contexture-session-tests--answering '("max-tokens" "1")
        (call-interactively #'contexture-session-configure)))
    (contexture-test-user-error "max-tokens must be a number"
      (contexture-session-tests--answering '("max-tokens" "(kill)")
        (call-interactively #'contexture-session-configure)))
    ;; Nothing written is the default, of whatever number.
    (dolist (case '(("max-tokens" "what the model takes, 256 to")
                    ("checkpoint-interval" "10, 1 to")
                    ("recent-runs" "not set, number")))
      (contexture-session-tests--answering `(,(car case) "7000")
        (ignore-errors (call-interactively #'contexture-session-configure)))
      (contexture-test-message (format "%s of conversation work: %s" (car case) (cadr case))
        (contexture-session-tests--answering `(,(car case) "")
          (call-interactively #'contexture-session-configure))))
    (contexture-test-message "auto-rollback of conversation work: on, default off"
      (contexture-session-tests--answering '("auto-rollback" "on")
        (call-interactively #'contexture-session-configure)))
    (contexture-test-message "strategy of conversation work: sliding, default tiered"
      (contexture-session-tests--answering '("strategy" "sliding")
        (call-interactively #'contexture-session-configure)))
    (contexture-session-configure :versioning nil)
    (contexture-test-settle)
    (should (equal (car (last (contexture-ert-calls 'configure-session)))
                   '(:versioning nil)))
    (contexture-test-message "model of conversation work: gpt-5"
      (contexture-session-configure :model "gpt-5"))))

(ert-deftest contexture-session-configure-knows-every-setting-of-the-server ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work")
    (let ((method (cl-find "configure-session" (contexture-request 'methods)
                           :key (lambda (it) (format "%s" (plist-get it :name)))
                           :test (lambda (a b) (equal a (string-trim-left b ":"))))))
      (should (equal
               (sort (mapcar (lambda (it)
                               (contexture--name (plist-get it :name)))
                             (contexture-session--settings
                              (contexture-request 'configure-session)))
                     #'string<)
               (sort (cl-set-difference
                      (mapcar (lambda (it)
                                (contexture--name (plist-get it :name)))
                              (plist-get method :params))
                      '("session" "request-key" "if-version" "managers")
                      :test #'equal)
                     #'string<))))))

;;;; Showing

(ert-deftest contexture-session-transcript-shows-who-said-what ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work" "first words" "an answer")
    (contexture-request
     'add-message '(:role :assistant :content "look"
                    :tool-calls ((:id "c1" :name "read_file" :arguments "{\"p\":1}"))))
    (contexture-request 'add-message
                        '(:role :tool :content "contents" :tool-call-id "c1"))
    (contexture-session-transcript nil)
    (contexture-ert-wait-for (get-buffer "*contexture: conversation work*"))
    (with-current-buffer "*contexture: conversation work*"
      (should buffer-read-only)
      (should (string-match-p "4 messages, 4 in view" (format "%s" header-line-format)))
      (should (string-match-p "user  msg-1,.*\n  first words" (buffer-string)))
      (should (string-match-p "→ read_file {\"p\":1}" (buffer-string)))
      (should (string-match-p "tool  msg-4,.*answers c1" (buffer-string)))
      (should (looking-at "tool"))
      (contexture-session-transcript-previous)
      (should (looking-at "assistant  msg-3"))
      (contexture-session-transcript-next)
      (should (looking-at "tool  msg-4")))))

(ert-deftest contexture-session-transcript-pins-and-copies ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work" "first words" "an answer")
    (contexture-session-transcript nil "msg-1")
    (contexture-ert-wait-for (get-buffer "*contexture: conversation work*"))
    (with-current-buffer "*contexture: conversation work*"
      (contexture-session-transcript-copy)
      (should (equal (current-kill 0) "first words"))
      (contexture-session-transcript-pin)
      (contexture-ert-wait-for (looking-at "user  msg-1.*, pinned"))
      (contexture-session-transcript-pin)
      (contexture-test-settle)
      (should (plist-member (car (last (contexture-ert-calls 'pin-message))) :pinned))
      (should-not (plist-get (car (last (contexture-ert-calls 'pin-message)))
                             :pinned)))))

(ert-deftest contexture-session-transcript-shows-what-was-rolled-back-when-asked ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work" "a" "b")
    (contexture-request 'checkpoint)
    (contexture-session-tests--fill "work" "lost words")
    (contexture-request 'rollback)
    (contexture-session-transcript nil)
    (contexture-ert-wait-for (get-buffer "*contexture: conversation work*"))
    (with-current-buffer "*contexture: conversation work*"
      (should-not (string-match-p "lost words" (buffer-string)))
      (contexture-session-transcript-toggle-log)
      (contexture-ert-wait-for (string-match-p "lost words" (buffer-string)))
      (contexture-session-transcript-toggle-log)
      (contexture-ert-wait-for (not (string-match-p "lost words" (buffer-string)))))))

(ert-deftest contexture-session-transcript-of-an-empty-session-says-so ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work")
    (contexture-session-transcript nil)
    (contexture-ert-wait-for (get-buffer "*contexture: conversation work*"))
    (with-current-buffer "*contexture: conversation work*"
      (should (string-match-p "There is no message yet" (buffer-string)))
      (contexture-test-user-error "no message at point"
        (contexture-session-transcript-pin)))))

(ert-deftest contexture-session-transcript-of-1000-messages-is-quick ()
  (contexture-session-tests--with
    (apply #'contexture-session-tests--fill "long" (contexture-session-tests--long 1000))
    (contexture-test-at-once (contexture-session-transcript nil "msg-500"))
    (contexture-ert-wait-for (get-buffer "*contexture: conversation long*"))
    (with-current-buffer "*contexture: conversation long*"
      (should (looking-at "assistant  msg-500"))
      (should (string-match-p "1,000 messages" (format "%s" header-line-format))))))

(ert-deftest contexture-session-search-leads-to-the-message ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "one" "nothing here" "the flux capacitor is broken")
    (contexture-session-tests--fill "two" "a" "b")
    (contexture-test-message "No conversation matches zebra"
      (contexture-session-search "zebra"))
    (contexture-session-search "capacitor")
    (contexture-ert-wait-for (get-buffer contexture-session-search-buffer))
    (with-current-buffer contexture-session-search-buffer
      (should (looking-at "one  assistant *the flux capacitor is broken"))
      (contexture-session-search-visit))
    (contexture-ert-wait-for (get-buffer "*contexture: conversation one*"))
    (with-current-buffer "*contexture: conversation one*"
      (should (looking-at "assistant  msg-2")))
    (contexture-test-user-error "words to search for" (contexture-session-search " "))))

(ert-deftest contexture-session-search-finds-names ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "parser-rewrite" "a" "b")
    (contexture-session-search "parser")
    (contexture-ert-wait-for (get-buffer contexture-session-search-buffer))
    (with-current-buffer contexture-session-search-buffer
      (should (looking-at "parser-rewrite  name"))
      (goto-char (point-max))
      (contexture-test-user-error "no hit at point" (contexture-session-search-visit)))))

;;;; Exporting and importing

(ert-deftest contexture-session-export-shows-markdown ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work" "hello" "yes?")
    (contexture-session-tests--answering '(nil)
      (call-interactively #'contexture-session-export))
    (contexture-ert-wait-for (get-buffer "*contexture: export of work*"))
    (with-current-buffer "*contexture: export of work*"
      (should (string-match-p "\\`# work\n" (buffer-string)))
      (should (string-match-p "hello" (buffer-string)))
      (should-not (buffer-modified-p)))))

(ert-deftest contexture-session-export-is-read-again ()
  (contexture-session-tests--with
    (contexture-ert-with-files nil
      (contexture-session-tests--fill "wörk" "grüße 🎉" "ja?")
      (let ((file (expand-file-name "work.json")))
        (contexture-test-message "Wrote conversation wörk (2 messages)"
          (cl-letf (((symbol-function 'read-file-name) (lambda (&rest _) file))
                    (current-prefix-arg '(4)))
            (call-interactively #'contexture-session-export)))
        (contexture-test-message "Imported conversation again (2 messages"
          (contexture-session-import file "again"))
        (contexture-request 'open-session '(:name "again" :create nil))
        (should (equal (plist-get (car (contexture-request 'get-messages)) :content)
                       "grüße 🎉"))
        (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
          (contexture-test-user-error "Nothing was written"
            (contexture-session-export nil 'json file)))))))

(ert-deftest contexture-session-import-refuses-what-is-no-export ()
  (contexture-session-tests--with
    (contexture-ert-with-files '(("a.json" . "{\"a\": 1}"))
      (contexture-test-user-error "Cannot read the file"
        (contexture-session-import (expand-file-name "none.json")))
      (contexture-test-message "Contexture: "
        (contexture-session-import (expand-file-name "a.json"))))))

;;;; Recordings of other agents

(defconst contexture-session-tests--recording
  (concat "{\"type\":\"user\",\"uuid\":\"1\",\"sessionId\":\"s\",\"cwd\":\"/srv\","
          "\"message\":{\"content\":\"Which port?\"}}\n"
          "{\"type\":\"assistant\",\"uuid\":\"2\",\"message\":{\"id\":\"m\","
          "\"content\":[{\"type\":\"text\",\"text\":\"5433\"}]}}\n"
          "{\"type\":\"progress\"}\n")
  "A recording of Claude Code.")

(ert-deftest contexture-session-import-shows-recordings-and-then-imports-them ()
  (contexture-session-tests--with
    (contexture-ert-with-files (list (cons "a.jsonl" contexture-session-tests--recording))
      (let ((asked nil))
        (cl-letf (((symbol-function 'y-or-n-p) (lambda (question) (push question asked) nil)))
          (contexture-session-import default-directory)
          (contexture-ert-wait-for asked))
        (should (equal (car asked) "Import 2 messages (1 new conversation)? "))
        (with-current-buffer contexture-session-import-buffer
          (should (looking-at "new +Which port\\?\n"))
          (should (search-forward "left out or changed: 1 progress" nil t))))
      (should-not (contexture-request 'list-sessions))
      (cl-letf (((symbol-function 'y-or-n-p) (lambda (_) t)))
        (contexture-test-message "Imported 2 messages, new conversations: 1"
          (contexture-session-import (expand-file-name "a.jsonl"))))
      (should (equal (plist-get (car (contexture-request 'list-sessions)) :session)
                     "Which port?"))
      (contexture-test-message "Nothing new to import"
        (contexture-session-import default-directory)))))

(ert-deftest contexture-session-import-offers-where-agents-keep-their-sessions ()
  (contexture-ert-with-files '((".specstory/history/a.md" . "x"))
    (let ((process-environment (cons "CODEX_HOME=/none" process-environment)))
      (should (equal (contexture-session-import--places)
                     (list (expand-file-name ".specstory/history"))))
      (should (equal (contexture-session-import--params "/none/sessions")
                     (list :paths '("/none/sessions") :project
                           (directory-file-name (expand-file-name default-directory))))))))

(ert-deftest contexture-session-import-shows-its-default-in-the-prompt ()
  (contexture-ert-with-files '((".specstory/history/a.md" . "x"))
    (let (asked)
      (cl-letf (((symbol-function 'read-file-name)
                 (lambda (_ directory default &rest _) (setq asked (list directory default)))))
        (contexture-session-import--read))
      (should (string-suffix-p ".specstory/history/" (car asked)))
      (should (equal (file-name-as-directory (expand-file-name (cadr asked)))
                     (expand-file-name (car asked)))))))

;;;; The mode line

(defun contexture-session-tests--lighter ()
  "Return what the mode line shows of the conversation, as text."
  (let ((lighter (contexture-session-line--lighter)))
    (substring-no-properties (if (listp lighter) (string-join lighter) lighter))))

(ert-deftest contexture-session-announces-as-the-server-does ()
  (let* (told
         (contexture-notification-functions
          (list (lambda (&rest it) (push it told)))))
    (contexture-session--announce '(:session "work" :id "ses-3" :messages 2) "open-session")
    (should (equal told '((session-changed (:session "work" :session-id "ses-3"
                                            :method "open-session" :messages 2)))))))

(ert-deftest contexture-session-mode-line-follows-the-session ()
  (contexture-session-tests--with
    (contexture-session-mode-line-mode 1)
    (should-not contexture--connection) ; it starts no server
    (should-not (contexture-session-line--lighter))
    (contexture-request 'open-session '(:name "work"))
    (contexture-ert-wait-for (equal (contexture-session-tests--lighter) " ses:idle"))
    (contexture-request 'add-message '(:content "hello"))
    (contexture-ert-wait-for (string-match-p "\\` ses:[1-9]/96,000\\'"
                                             (contexture-session-tests--lighter)))
    (contexture-request 'add-message (list :content (apply #'concat (make-list 90000 " word"))))
    (contexture-ert-wait-for (string-match-p "\\` ses:90,0[0-9][0-9]/96,000!\\'"
                                             (contexture-session-tests--lighter)))
    (should (eq 'contexture-session-warning
                (get-text-property 0 'face (cadr (contexture-session-line--lighter)))))
    (contexture-request 'delete-session '(:session "work"))
    (contexture-ert-wait-for (null (contexture-session-line--lighter)))))

(ert-deftest contexture-session-mode-line-leaves-nothing-behind ()
  (contexture-session-tests--with
    (contexture-session-tests--fill "work" "a")
    (contexture-session-mode-line-mode 1)
    (contexture-ert-wait-for (contexture-session-line--lighter))
    (contexture-test-settle)
    (should (equal (contexture-ert-calls 'subscribe)
                   '((:topics ("context-changed" "checkpoint-created" "context-pruned"
                               "context-summarized" "session-changed")))))
    (contexture-session-mode-line-mode -1)
    (should-not contexture-notification-functions)
    (should-not contexture-connected-hook)
    (should-not contexture-disconnected-hook)
    (contexture-test-settle)
    (should (equal (car (last (contexture-ert-calls 'subscribe))) '(:topics nil)))))

(ert-deftest contexture-session-map-is-behind-the-prefix ()
  (should (commandp (lookup-key contexture-command-map (kbd "n o"))))
  (map-keymap (lambda (_ command) (should (commandp command))) contexture-session-map))

(provide 'contexture-session-tests)
;;; contexture-session-tests.el ends here
