;;; contexture-conversations-tests.el --- Tests of the commands for conversations  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Conversations by the commands that a user has for them, with a real server
;; whose clock stands still.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-conversation)
(require 'contexture-conversations)
(require 'contexture-menu)

(defmacro contexture-conversations-tests--with (&rest body)
  "Run BODY with a server of its own, whose clock stands still."
  (declare (indent 0) (debug t))
  `(let ((contexture-ert-server-command contexture-test-binary))
     (contexture-ert-with-server
       :tokenizer nil
       (save-window-excursion
         (unwind-protect (progn ,@body)
           (contexture-conversation-mode-line-mode -1))))))

(defmacro contexture-conversations-tests--answering (input &rest body)
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

(defun contexture-conversations-tests--fill (name &rest contents)
  "Make the conversation NAME, in which CONTENTS were said in turn."
  (contexture-request 'open-session (list :name name))
  (when contents
    (contexture-request
     'add-message
     (list :messages
           (cl-loop for text in contents
                    for role = :user then (if (eq role :user) :assistant :user)
                    collect (list :role role :content text))))))

(defun contexture-conversations-tests--long (count)
  "Return COUNT texts of some length."
  (cl-loop for number from 1 to count
           collect (format "step %d about src/file%d.rs: %s" number number
                           (mapconcat #'identity (make-list 20 "word") " "))))

(defun contexture-conversations-tests--current ()
  "Return the current conversation."
  (car (contexture-request 'list-sessions '(:current t))))

(defun contexture-conversations-tests--in-view ()
  "Return how many messages of the current conversation are in view."
  (plist-get (contexture-request 'context-stats) :items))

;;;; Opening and naming

(ert-deftest contexture-conversation-open-begins-a-session ()
  (contexture-conversations-tests--with
    (contexture-test-message "^Started conversation work, which has the items of "
      (contexture-conversations-tests--answering '("work")
        (call-interactively #'contexture-conversation-open)))
    (should (equal (plist-get (contexture-conversations-tests--current) :session) "work"))))

(ert-deftest contexture-conversation-open-goes-back-to-one ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "one" "hello" "yes?")
    (contexture-conversations-tests--fill "two")
    (contexture-test-message "Conversation one is open (2 messages, [0-9]+ tokens)"
      (contexture-conversation-open "one"))
    (should (equal (plist-get (contexture-conversations-tests--current) :session) "one"))))

(ert-deftest contexture-conversation-open-refuses-an-empty-name ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--answering '("  ")
      (contexture-test-user-error "No conversation was chosen"
        (call-interactively #'contexture-conversation-open)))))

(ert-deftest contexture-conversation-new-lets-the-server-name-it ()
  (contexture-conversations-tests--with
    (contexture-test-message "Started conversation conversation-1"
      (contexture-conversations-tests--answering '("")
        (call-interactively #'contexture-conversation-new)))))

(ert-deftest contexture-conversation-new-can-show-a-buffers-context ()
  (contexture-conversations-tests--with
    (with-temp-buffer
      (rename-buffer "notes.txt")
      (contexture-test-message "Started conversation n, which has the items of buffer notes.txt"
        (let ((current-prefix-arg '(4)))
          (contexture-conversations-tests--answering '("n")
            (call-interactively #'contexture-conversation-new))))
      (should (equal (plist-get (contexture-conversations-tests--current) :manager)
                     "notes.txt")))))

(ert-deftest contexture-conversation-names-can-be-of-any-script ()
  (contexture-conversations-tests--with
    (contexture-test-message "Started conversation Überblick 会話 🎉"
      (contexture-conversation-new "Überblick 会話 🎉"))
    (contexture-test-message "Added msg-1 to conversation Überblick 会話 🎉"
      (contexture-conversation-add-message "grüße"))
    (contexture-conversation-transcript nil)
    (llm-ert-wait-for (get-buffer "*contexture: conversation Überblick 会話 🎉*"))
    (with-current-buffer "*contexture: conversation Überblick 会話 🎉*"
      (should (string-match-p "grüße" (buffer-string))))))

(ert-deftest contexture-conversation-switch-wants-one-that-exists ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "one" "a")
    (contexture-conversations-tests--fill "two" "b")
    (contexture-test-message "Conversation one is open"
      (contexture-conversations-tests--answering '("one")
        (call-interactively #'contexture-conversation-make-current)))
    (contexture-test-message "no session \"none\""
      (contexture-conversation-make-current "none"))))

(ert-deftest contexture-conversation-switch-says-that-there-is-none ()
  (contexture-conversations-tests--with
    (contexture-test-user-error "There is no conversation yet; \\(?:M-x contexture-conversation-\\|C-c x n \\)[-a-zA-Z]+"
      (call-interactively #'contexture-conversation-make-current))))

(ert-deftest contexture-conversation-completion-tells-of-each ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "one" "a")
    (contexture-conversations-tests--fill "two" "b" "c")
    (let (table)
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (_ candidates &rest _) (setq table candidates) "two")))
        (contexture-conversations--read "Conversation"))
      (should (equal (all-completions "" table) '("two" "one")))
      (let* ((metadata (completion-metadata "" table nil))
             (annotate (completion-metadata-get metadata 'annotation-function)))
        (should (eq (completion-metadata-get metadata 'category) 'contexture-conversations))
        (should (string-match-p "2 messages, 10 tokens, .* ago, current"
                                (funcall annotate "two")))
        (should (string-match-p "1 message, 5 tokens, .* ago\\'"
                                (funcall annotate "one")))))))

(ert-deftest contexture-conversation-rename-keeps-all-of-it ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "old" "a" "b")
    (contexture-test-message "The conversation is now called new"
      (contexture-conversations-tests--answering '("old" "new")
        (call-interactively #'contexture-conversation-rename)))
    (should (equal (plist-get (contexture-conversations-tests--current) :session) "new"))
    (should (equal (plist-get (contexture-conversations-tests--current) :messages) 2))
    (contexture-test-user-error "needs a name" (contexture-conversation-rename "new" " "))))

(ert-deftest contexture-conversation-deleted-ones-come-back ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work" "a" "b")
    (contexture-test-message "Deleted conversation work (2 messages.*; \\(?:M-x\\|C-c\\) .* brings it back"
      (contexture-conversations-tests--answering '("work")
        (call-interactively #'contexture-conversation-delete)))
    (should-not (contexture-request 'list-sessions))
    (contexture-test-message "Conversation work is back (2 messages"
      (contexture-conversations-tests--answering '(nil)
        (call-interactively #'contexture-conversation-bring-back)))
    (should (= 1 (length (contexture-request 'list-sessions))))
    (contexture-test-user-error "There are no deleted conversations"
      (call-interactively #'contexture-conversation-bring-back))))

(ert-deftest contexture-conversation-restore-tells-two-of-one-name-apart ()
  (contexture-conversations-tests--with
    (dotimes (_ 2)
      (contexture-conversations-tests--fill "work" "a")
      (contexture-request 'delete-session '(:session "work")))
    (let ((names (mapcar #'car (contexture-conversations--name-entries
                                (contexture-request 'list-sessions '(:deleted t))))))
      (should (= 2 (length (delete-dups names))))
      (should (cl-some (lambda (name) (string-match-p "\\`work <ses-[12]>\\'" name))
                       names)))))

(ert-deftest contexture-conversation-commands-say-how-to-open-one ()
  (contexture-conversations-tests--with
    (contexture-test-message "no conversation is open; \\(?:M-x contexture-conversation-\\|C-c x n \\)[-a-zA-Z]+ opens one"
      (contexture-conversation-add-message "hello"))
    (pcase-dolist (`(,session . ,noted) '((nil . t) ("none" . nil)))
      (let ((problem (should-error (contexture-request 'get-messages (list :session session))
                                   :type 'contexture-error)))
        ;; Whatever the words of the message are.
        (should (eq noted (contexture-conversations--none-open-p
                           (list :message "other words" :data (nth 3 problem)))))))))

;;;; Adding

(ert-deftest contexture-conversation-add-message-asks-for-the-role ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work")
    (contexture-test-message "Added msg-1 to conversation work (1 message,"
      (let ((current-prefix-arg '(4)))
        (contexture-conversations-tests--answering '("system" "You are terse.")
          (call-interactively #'contexture-conversation-add-message))))
    (should (eq :system (plist-get (car (contexture-request 'get-messages)) :role)))
    (contexture-test-user-error "empty" (contexture-conversation-add-message "  "))))

(ert-deftest contexture-conversation-add-region-adds-the-region ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work")
    (with-temp-buffer
      (insert "one two three")
      (contexture-test-user-error "Mark a region"
        (call-interactively #'contexture-conversation-add-region))
      (contexture-conversation-add-region 5 8))
    (llm-ert-wait-for (contexture-request 'get-messages))
    (should (equal (plist-get (car (contexture-request 'get-messages)) :content)
                   "two"))))

;;;; Checkpoints

(ert-deftest contexture-conversation-rollback-says-what-it-costs ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work" "a" "b")
    (contexture-test-message "Named turn 1 of conversation work"
      (contexture-conversations-tests--answering '("the refactoring")
        (call-interactively #'contexture-conversation-name-turn)))
    (contexture-conversations-tests--fill "work" "c" "d" "e")
    (contexture-test-message "Conversation work went back: 2 turns, 3 messages taken back"
      (contexture-conversations-tests--answering '("turn 1  the refactoring")
        (call-interactively #'contexture-conversation-go-back)))
    (should (= 2 (length (contexture-request 'get-messages))))
    (contexture-test-message "Going back in conversation work is undone: 2 turns restored"
      (contexture-conversation-undo))
    (should (= 5 (length (contexture-request 'get-messages))))))

(ert-deftest contexture-conversation-rollback-offers-the-last-checkpoint ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work" "a" "b")
    (contexture-request 'checkpoint '(:message "first"))
    (contexture-conversations-tests--fill "work" "c" "d")
    (contexture-request 'checkpoint '(:message "second"))
    (should (equal (contexture-conversations-tests--answering '(nil)
                     (contexture-conversations--read-checkpoint "Go back to"))
                   "chk-2"))
    (let ((checkpoints (reverse (contexture-request 'list-operations '(:session "work" :checkpoints t)))))
      (should (string-match-p "loses 1 turn\\'"
                              (contexture-conversations--checkpoint-text
                               (car checkpoints) 2)))
      (should (string-match-p "loses no turns"
                              (contexture-conversations--checkpoint-text
                               (cadr checkpoints) 2))))))

(ert-deftest contexture-conversation-rollback-needs-a-checkpoint ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work" "a")
    (contexture-test-user-error "has no turn to go back to; \\(?:M-x contexture-conversation-\\|C-c x n \\)[-a-zA-Z]+"
      (call-interactively #'contexture-conversation-go-back))))

(ert-deftest contexture-conversation-checkpoint-tells-when-none-are-kept ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work" "a")
    ;; As the server answers while "versioning" is off.
    (cl-letf (((symbol-function 'contexture-conversations--call)
               (lambda (_method _params success) (funcall success nil))))
      (contexture-test-message "keeps no turns"
        (contexture-conversation-name-turn "")))))

(ert-deftest contexture-conversation-fork-goes-on-from-a-checkpoint ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work" "a" "b")
    (contexture-request 'checkpoint '(:message "here"))
    (contexture-conversations-tests--fill "work" "c" "d")
    (contexture-test-message "Conversation other continues from that turn (2 messages"
      (let ((current-prefix-arg '(4)))
        (contexture-conversations-tests--answering '(nil "other")
          (call-interactively #'contexture-conversation-fork))))
    (should (equal (plist-get (contexture-conversations-tests--current) :session) "other"))))

;;;; Pruning and summarizing

(ert-deftest contexture-conversation-prune-is-undone ()
  (contexture-conversations-tests--with
    (apply #'contexture-conversations-tests--fill "work" (contexture-conversations-tests--long 20))
    (contexture-test-message "Left out [0-9]+ messages of conversation work: [0-9]+ → [0-9]+ tokens"
      (let ((current-prefix-arg 300))
        (call-interactively #'contexture-conversation-leave-out)))
    (should (< (contexture-conversations-tests--in-view) 20))
    (contexture-test-message "Undid leaving messages out of conversation work"
      (contexture-conversation-undo))
    (should (= (contexture-conversations-tests--in-view) 20))
    (contexture-test-message "Nothing to undo" (contexture-conversation-undo))))

(ert-deftest contexture-conversation-undo-goes-further-back ()
  (contexture-conversations-tests--with
    (apply #'contexture-conversations-tests--fill "work" (contexture-conversations-tests--long 30))
    (contexture-test-message "Left out" (contexture-conversation-leave-out 700))
    (let ((between (contexture-conversations-tests--in-view)))
      (contexture-test-message "Left out" (contexture-conversation-leave-out 300))
      (contexture-test-message "Undid" (contexture-conversation-undo))
      (should (= (contexture-conversations-tests--in-view) between))
      (contexture-test-message "Undid" (contexture-conversation-undo))
      (should (= (contexture-conversations-tests--in-view) 30)))))

(ert-deftest contexture-conversation-undo-takes-a-rollback-back ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work" "a" "b")
    (contexture-request 'checkpoint)
    (contexture-conversations-tests--fill "work" "c" "d")
    (contexture-request 'rollback)
    (contexture-test-message "is undone: 1 turn restored" (contexture-conversation-undo))
    (should (= 4 (length (contexture-request 'get-messages))))
    (contexture-test-message "Nothing to undo" (contexture-conversation-undo))))

(ert-deftest contexture-conversation-redo-brings-back-what-was-undone ()
  (contexture-conversations-tests--with
    (apply #'contexture-conversations-tests--fill "work" (contexture-conversations-tests--long 30))
    (contexture-test-message "nothing to redo" (contexture-conversation-redo))
    (contexture-test-message "Left out" (contexture-conversation-leave-out 300))
    (let ((pruned (contexture-conversations-tests--in-view)))
      (contexture-test-message "Undid leaving messages out of conversation work; .* redoes it"
        (contexture-conversation-undo))
      (let ((contexture-menu--patience 10))
        (contexture-menu--fetch-session-changes))
      (should (equal (contexture-menu--session-redo) "redo: leaving messages out"))
      (contexture-test-message "Redid leaving messages out of conversation work; .* undoes it"
        (contexture-conversation-redo))
      (should (= (contexture-conversations-tests--in-view) pruned))
      (contexture-conversation-undo)
      (contexture-conversations-tests--fill "work" "more")
      (contexture-test-message "nothing to redo" (contexture-conversation-redo)))))

(ert-deftest contexture-conversation-prune-says-when-there-is-nothing-to-do ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work" "a")
    (contexture-test-message "Nothing to leave out: conversation work has only [0-9]+ tokens"
      (contexture-conversation-leave-out))))

(ert-deftest contexture-conversation-summarize-is-undone ()
  (contexture-conversations-tests--with
    (apply #'contexture-conversations-tests--fill "work" (contexture-conversations-tests--long 40))
    (contexture-test-message "Shortened [0-9]+ messages of conversation work: [0-9,]+ → [0-9,]+"
      (contexture-conversation-shorten 4))
    (should (< (contexture-conversations-tests--in-view) 10))
    (with-current-buffer "*contexture: summary*"
      (should (string-match-p "src/file" (buffer-string))))
    (contexture-test-message "Undid shortening of" (contexture-conversation-undo))
    (should (= 40 (cl-count-if (lambda (it) (not (plist-get it :out)))
                               (contexture-request 'get-messages))))))

(ert-deftest contexture-conversation-summarize-says-why-it-does-not ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work" "a" "b")
    (contexture-test-message "Contexture: " (contexture-conversation-shorten 1))))

(ert-deftest contexture-conversation-undo-to-offers-what-changed-the-view ()
  (contexture-conversations-tests--with
    (contexture-test-user-error "No conversation is open; .* opens one"
      (contexture-conversation-undo-to 0))
    (apply #'contexture-conversations-tests--fill "work" (contexture-conversations-tests--long 20))
    (contexture-test-user-error "Nothing was left out, shortened or taken back"
      (call-interactively #'contexture-conversation-undo-to))
    (contexture-request 'prune-context '(:max-tokens 300))
    (contexture-request 'checkpoint)
    (contexture-test-message "Undid these changes of conversation work"
      (contexture-conversations-tests--answering '(nil)
        (call-interactively #'contexture-conversation-undo-to)))
    (should (= (contexture-conversations-tests--in-view) 20))))

;;;; Settings

(ert-deftest contexture-conversation-configure-shows-value-default-and-range ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work")
    (contexture-test-message "max-tokens of conversation work: 3000, default what the model takes, 256 to"
      (contexture-conversations-tests--answering '("max-tokens" "3000")
        (call-interactively #'contexture-conversation-set)))
    (contexture-test-user-error "max-tokens must be from 256 to 10000000"
      (contexture-conversations-tests--answering '("max-tokens" "1")
        (call-interactively #'contexture-conversation-set)))
    (contexture-test-user-error "max-tokens must be a number"
      (contexture-conversations-tests--answering '("max-tokens" "(kill)")
        (call-interactively #'contexture-conversation-set)))
    ;; Nothing written is the default, of whatever number.
    (dolist (case '(("max-tokens" "what the model takes, 256 to")
                    ("checkpoint-interval" "10, 1 to")
                    ("recent-runs" "not set, number")))
      (contexture-conversations-tests--answering `(,(car case) "7000")
        (ignore-errors (call-interactively #'contexture-conversation-set)))
      (contexture-test-message (format "%s of conversation work: %s" (car case) (cadr case))
        (contexture-conversations-tests--answering `(,(car case) "")
          (call-interactively #'contexture-conversation-set))))
    (contexture-test-message "auto-rollback of conversation work: on, default off"
      (contexture-conversations-tests--answering '("auto-rollback" "on")
        (call-interactively #'contexture-conversation-set)))
    (contexture-test-message "strategy of conversation work: sliding, default tiered"
      (contexture-conversations-tests--answering '("strategy" "sliding")
        (call-interactively #'contexture-conversation-set)))
    (contexture-conversation-set :versioning nil)
    (contexture-test-settle)
    (should (equal (car (last (llm-ert-calls 'configure-session)))
                   '(:versioning nil)))
    (contexture-test-message "model of conversation work: gpt-5"
      (contexture-conversation-set :model "gpt-5"))))

(ert-deftest contexture-conversation-configure-knows-every-setting-of-the-server ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work")
    (let ((params (contexture-test-params 'configure-session)))
      (should (equal
               (sort (mapcar (lambda (it)
                               (contexture--name (plist-get it :name)))
                             (contexture-conversations--settings
                              (contexture-request 'configure-session)))
                     #'string<)
               (sort (cl-set-difference
                      (mapcar #'car params)
                      '("session" "name" "request-key" "if-version" "managers" "project")
                      :test #'equal)
                     #'string<))))))

;;;; Showing

(ert-deftest contexture-conversation-transcript-shows-who-said-what ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work" "first words" "an answer")
    (contexture-request
     'add-message '(:role :assistant :content "look"
                    :tool-calls ((:id "c1" :name "read_file" :arguments "{\"p\":1}"))))
    (contexture-request 'add-message
                        '(:role :tool :content "contents" :tool-call-id "c1"))
    (contexture-conversation-transcript nil)
    (llm-ert-wait-for (get-buffer "*contexture: conversation work*"))
    (with-current-buffer "*contexture: conversation work*"
      (should buffer-read-only)
      (should (string-match-p "4 messages, 4 sent" (format "%s" header-line-format)))
      (should (string-match-p "user  msg-1,.*\n  first words" (buffer-string)))
      (should (string-match-p "→ read_file {\"p\":1}" (buffer-string)))
      (should (string-match-p "tool  msg-4,.*answers c1" (buffer-string)))
      (should (looking-at "tool"))
      (contexture-conversation-transcript-previous)
      (should (looking-at "assistant  msg-3"))
      (contexture-conversation-transcript-next)
      (should (looking-at "tool  msg-4")))))

(ert-deftest contexture-conversation-transcript-pins-and-copies ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work" "first words" "an answer")
    (contexture-conversation-transcript nil "msg-1")
    (llm-ert-wait-for (get-buffer "*contexture: conversation work*"))
    (with-current-buffer "*contexture: conversation work*"
      (contexture-conversation-transcript-copy)
      (should (equal (current-kill 0) "first words"))
      (contexture-conversation-transcript-pin)
      (llm-ert-wait-for (looking-at "user  msg-1.*, pinned"))
      (contexture-conversation-transcript-pin)
      (contexture-test-settle)
      (should (plist-member (car (last (llm-ert-calls 'pin-message))) :pinned))
      (should-not (plist-get (car (last (llm-ert-calls 'pin-message)))
                             :pinned)))))

(ert-deftest contexture-conversation-transcript-shows-what-was-rolled-back-when-asked ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work" "a" "b")
    (contexture-request 'checkpoint)
    (contexture-conversations-tests--fill "work" "lost words")
    (contexture-request 'rollback)
    (contexture-conversation-transcript nil)
    (llm-ert-wait-for (get-buffer "*contexture: conversation work*"))
    (with-current-buffer "*contexture: conversation work*"
      (should-not (string-match-p "lost words" (buffer-string)))
      (contexture-conversation-transcript-toggle-log)
      (llm-ert-wait-for (string-match-p "lost words" (buffer-string)))
      (contexture-conversation-transcript-toggle-log)
      (llm-ert-wait-for (not (string-match-p "lost words" (buffer-string)))))))

(ert-deftest contexture-long-lines-are-shown-in-part ()
  "Emacs takes long to display them, in whatever buffer."
  (let* ((line (concat "begin" (make-string 300000 ?x) "end"))
         (message (list :id "msg-1" :role :user :content line :tokens 1)))
    (save-window-excursion
      (cl-letf (((symbol-function 'contexture-conversations--call)
                 (lambda (_ _ then) (funcall then (list message))))
                ((symbol-function 'contexture-request-async)
                 (lambda (_ _ &rest keys)
                   (funcall (plist-get keys :success) (list :session "s" :text line)))))
        (dolist (show `((,contexture-list--item-buffer
                         . ,(lambda () (contexture-list-item--display
                                        (list :content line :metadata '(:mode "js-mode")))))
                        (,contexture-conversations--message-buffer
                         . ,(lambda () (contexture-conversations--show-messages "s" nil)))
                        ("*contexture: shared*"
                         . ,(lambda () (contexture-conversations--show-shared '(:id "hub-1"))))
                        (,contexture-preview-buffer
                         . ,(lambda ()
                              (with-current-buffer (get-buffer-create contexture-preview-buffer)
                                (contexture-preview--show (list :text line)))))))
          (funcall (cdr show))
          (with-current-buffer (car show)
            (should (< (buffer-size) 9000))
            (dolist (part '("begin" "more characters of this line" "end"))
              (unless (string-search part (buffer-string)) (ert-fail (list (car show) part))))
            (kill-buffer)))
        (with-temp-buffer
          (contexture-conversation-transcript-mode)
          (contexture-conversations-transcript--insert '(:session "s" :items 1 :tokens 1)
                                                       (list message message))
          (should (< (buffer-size) 12000))
          ;; The keys still go from message to message, and copy all of one.
          (goto-char (point-max))
          (contexture-conversation-transcript-previous)
          (contexture-conversation-transcript-previous)
          (should (bobp))
          (should (equal (plist-get (contexture-conversations-transcript--message) :content)
                         line)))))))

(ert-deftest contexture-long-lines-from-right-to-left-are-broken ()
  "The time to display them grows with the square of their length."
  (let* ((line (apply #'concat "a " (make-list 900 "אב، ")))
         (message (list :id "msg-1" :role :user :content line :tokens 1))
         (longest (lambda ()
                    (apply #'max (mapcar #'length (split-string (buffer-string) "\n")))))
         (letters (lambda () (string-replace "\n" "" (buffer-string)))))
    (with-temp-buffer
      (insert "short\n" line "\nא\n" (make-string 3000 ?x))
      (let ((text (funcall letters)))
        (contexture--shorten-lines "in it")
        (should (equal text (funcall letters)))
        (should (= 3000 (funcall longest)))
        (delete-region (line-beginning-position 1) (point-max))
        (goto-char (point-min))
        (should (looking-at "short\n"))
        (should (<= (funcall longest) contexture--longest-turned-line))))
    (with-temp-buffer
      (contexture-conversation-transcript-mode)
      (contexture-conversations-transcript--insert '(:session "s" :items 1 :tokens 1)
                                                   (list message))
      (should (<= (funcall longest) contexture--longest-turned-line)))
    (with-temp-buffer
      (let ((state (contexture-markdown--begin nil)))
        ;; At once, and in pieces as a model answers.
        (contexture-markdown--insert-broken state line)
        (dotimes (_ 300) (contexture-markdown--insert-broken state "שלום "))
        (should (<= (funcall longest) (* 2 contexture--longest-turned-line)))
        (should (equal (apply #'concat line (make-list 300 "שלום "))
                       (contexture-markdown--text (point-min) (point-max))))))))

(ert-deftest contexture-conversation-export-of-long-lines-is-whole-but-shown-in-part ()
  (dolist (line (list (concat "begin" (make-string 300000 ?x) "end")
                      (concat "begin" (make-string 3000 ?א) "end")))
    (save-window-excursion
      (contexture-conversations--show-export (list :session "s" :text line) 'json)
      (with-current-buffer "*contexture: export of s*"
        (should (equal line (buffer-substring-no-properties (point-min) (point-max))))
        (should-not (buffer-modified-p))
        (should (> 4100 (cl-loop for position from (point-min) below (point-max)
                                 count (not (get-text-property position 'display)))))
        (should (eq bidi-display-reordering (not (string-search "א" line))))
        (kill-buffer)))))

(ert-deftest contexture-conversation-transcript-of-an-empty-session-says-so ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work")
    (contexture-conversation-transcript nil)
    (llm-ert-wait-for (get-buffer "*contexture: conversation work*"))
    (with-current-buffer "*contexture: conversation work*"
      (should (string-match-p "There is no message yet" (buffer-string)))
      (contexture-test-user-error "no message at point"
        (contexture-conversation-transcript-pin)))))

(ert-deftest contexture-conversation-transcript-of-1000-messages-is-quick ()
  (contexture-conversations-tests--with
    (apply #'contexture-conversations-tests--fill "long" (contexture-conversations-tests--long 1000))
    (contexture-test-at-once (contexture-conversation-transcript nil "msg-500"))
    (llm-ert-wait-for (get-buffer "*contexture: conversation long*"))
    (with-current-buffer "*contexture: conversation long*"
      (should (looking-at "assistant  msg-500"))
      (should (string-match-p "1,000 messages" (format "%s" header-line-format))))))

(ert-deftest contexture-conversation-search-leads-to-the-message ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "one" "nothing here" "the flux capacitor is broken")
    (contexture-conversations-tests--fill "two" "a" "b")
    (contexture-test-message "No conversation matches zebra"
      (contexture-conversation-search "zebra"))
    (contexture-conversation-search "capacitor")
    (llm-ert-wait-for (get-buffer contexture-conversation-search-buffer))
    (with-current-buffer contexture-conversation-search-buffer
      (should (looking-at "one  assistant *the flux capacitor is broken"))
      (contexture-conversation-search-visit))
    (llm-ert-wait-for (get-buffer "*contexture: conversation one*"))
    (with-current-buffer "*contexture: conversation one*"
      (should (looking-at "assistant  msg-2")))
    (contexture-test-user-error "words to search for" (contexture-conversation-search " "))))

(ert-deftest contexture-conversation-search-finds-names ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "parser-rewrite" "a" "b")
    (contexture-conversation-search "parser")
    (llm-ert-wait-for (get-buffer contexture-conversation-search-buffer))
    (with-current-buffer contexture-conversation-search-buffer
      (should (looking-at "parser-rewrite  name"))
      (goto-char (point-max))
      (contexture-test-user-error "no hit at point" (contexture-conversation-search-visit)))))

;;;; Exporting and importing

(ert-deftest contexture-conversation-export-shows-markdown ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work" "hello" "yes?")
    (contexture-conversations-tests--answering '(nil)
      (call-interactively #'contexture-conversation-export))
    (llm-ert-wait-for (get-buffer "*contexture: export of work*"))
    (with-current-buffer "*contexture: export of work*"
      (should (string-match-p "\\`# work\n" (buffer-string)))
      (should (string-match-p "hello" (buffer-string)))
      (should-not (buffer-modified-p)))))

(ert-deftest contexture-conversation-export-is-read-again ()
  (contexture-conversations-tests--with
    (llm-ert-with-files nil
      (contexture-conversations-tests--fill "wörk" "grüße 🎉" "ja?")
      (let ((file (expand-file-name "work.json")))
        (contexture-test-message "Wrote conversation wörk (2 messages) as json to "
          (cl-letf (((symbol-function 'read-file-name) (lambda (&rest _) file))
                    (current-prefix-arg '(4)))
            (call-interactively #'contexture-conversation-export)))
        (contexture-test-message "Imported conversation again (2 messages"
          (contexture-import-sessions file "again"))
        (contexture-request 'open-session '(:name "again" :create nil))
        (should (equal (plist-get (car (contexture-request 'get-messages)) :content)
                       "grüße 🎉"))
        (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
          (contexture-test-user-error "Nothing was written"
            (contexture-conversation-export nil 'json file)))))))

(ert-deftest contexture-conversation-export-is-opened-again-and-branched ()
  (contexture-conversations-tests--with
   (contexture-conversations-tests--fill
    "work" "Which port?" "Port 5433.\n\n## A heading\n\n```\n## User (msg-9, 7)\n```" "And the host?" "It is db.")
   (llm-ert-with-files nil
		       (let ((file (expand-file-name "work.md")))
			 ;; Whatever the name of a file says, the message says what is in it.
			 (contexture-test-message "^Wrote conversation work (4 messages) as markdown to .*work\\.org$"
						  (contexture-conversation-export
						   nil nil (expand-file-name "work.org")))
			 (contexture-test-message "^Wrote conversation work (4 messages) as markdown to "
						  (contexture-conversation-export nil 'markdown file))
			 (contexture-request 'add-message '(:content "Said later."))
			 (contexture-conversations-tests--fill "other" "Hello")
			 (contexture-test-message "^Opened conversation work ([^;]*)$"
						  (contexture-import-sessions file))
			 (should (equal (plist-get (contexture-conversations-tests--current) :session) "work"))
			 ;; Edited since, and opened where it is visited.
			 (contexture-test-visiting file
						   (search-forward "5433")
						   (replace-match "1")
						   (save-buffer)
						   (should (equal (let ((insert-default-directory t))
								    (cl-letf (((symbol-function 'read-file-name)
									       (lambda (_ _ default &rest _) (expand-file-name default))))
								      (contexture-import--read)))
								  file))
						   (contexture-test-message "^Opened conversation work.*its own text of msg-2, which"
									    (contexture-import-sessions file))
						   ;; At a heading of the answer, the branch has the conversation up to that answer.
						   (goto-char (point-min))
						   (search-forward "## A heading")
						   (save-current-buffer (contexture-conversation-branch "branch"))
						   (llm-ert-wait-for (cl-find "branch" (contexture-request 'list-sessions)
									      :key (lambda (it) (plist-get it :session)) :test #'equal))
						   (should (equal (mapcar (lambda (it) (plist-get it :content))
									  (contexture-request 'get-messages '(:session "branch")))
								  '("Which port?"
								    "Port 5433.\n\n## A heading\n\n```\n## User (msg-9, 7)\n```")))
						   (contexture-test-settle)
						   (goto-char (point-min))
						   (contexture-test-user-error "Go to a message" (contexture-conversation-branch)))))))

(ert-deftest contexture-conversation-import-refuses-what-is-no-export ()
  (contexture-conversations-tests--with
    (llm-ert-with-files '(("a.json" . "{\"a\": 1}"))
      (contexture-test-user-error "Cannot read the file"
        (contexture-import-sessions (expand-file-name "none.json")))
      (contexture-test-message "Contexture: "
        (contexture-import-sessions (expand-file-name "a.json"))))))

;;;; Recordings of other agents

(defconst contexture-conversations-tests--recording
  (concat "{\"type\":\"user\",\"uuid\":\"1\",\"sessionId\":\"s\",\"cwd\":\"/srv\","
          "\"message\":{\"content\":\"Which port?\"}}\n"
          "{\"type\":\"assistant\",\"uuid\":\"2\",\"message\":{\"id\":\"m\","
          "\"content\":[{\"type\":\"text\",\"text\":\"5433\"}]}}\n"
          "{\"type\":\"progress\"}\n")
  "A recording of Claude Code.")

(ert-deftest contexture-conversation-import-shows-recordings-and-then-imports-them ()
  (contexture-conversations-tests--with
    (llm-ert-with-files (list (cons "a.jsonl" contexture-conversations-tests--recording))
      (let ((asked nil))
        (cl-letf (((symbol-function 'y-or-n-p) (lambda (question) (push question asked) nil)))
          (contexture-import-sessions default-directory)
          (llm-ert-wait-for asked))
        (should (equal (car asked) "Import 2 messages (1 new conversation)? "))
        (with-current-buffer contexture-import-buffer
          (should (looking-at "new +Which port\\?\n"))
          (should (search-forward "left out or changed: 1 progress" nil t))))
      (should-not (contexture-request 'list-sessions))
      (cl-letf (((symbol-function 'y-or-n-p) (lambda (_) t)))
        (contexture-test-message "Imported 2 messages, new conversations: 1"
          (contexture-import-sessions (expand-file-name "a.jsonl"))))
      (should (equal (plist-get (car (contexture-request 'list-sessions)) :session)
                     "Which port?"))
      (contexture-test-message "Nothing new to import"
        (contexture-import-sessions default-directory)))))

(ert-deftest contexture-conversation-import-offers-where-agents-keep-their-sessions ()
  (llm-ert-with-files '((".specstory/history/a.md" . "x"))
    (let ((process-environment (cons "CODEX_HOME=/none" process-environment)))
      (should (equal (contexture-import--places)
                     (list (expand-file-name ".specstory/history"))))
      (should (equal (contexture-import--params "/none/sessions")
                     (list :paths '("/none/sessions") :project
                           (directory-file-name (expand-file-name default-directory))))))))

(ert-deftest contexture-conversation-import-shows-its-default-in-the-prompt ()
  (llm-ert-with-files '((".specstory/history/a.md" . "x"))
    (let (asked)
      (cl-letf (((symbol-function 'read-file-name)
                 (lambda (_ directory default &rest _) (setq asked (list directory default)))))
        (contexture-import--read))
      (should (string-suffix-p ".specstory/history/" (car asked)))
      (should (equal (file-name-as-directory (expand-file-name (cadr asked)))
                     (expand-file-name (car asked)))))))

;;;; The mode line

(defun contexture-conversations-tests--lighter ()
  "Return what the mode line shows of the conversation, as text."
  (let ((lighter (contexture-conversations-line--lighter)))
    (substring-no-properties (if (listp lighter) (string-join lighter) lighter))))

(ert-deftest contexture-conversation-announces-as-the-server-does ()
  (let* (told
         (contexture-notification-functions
          (list (lambda (&rest it) (push it told)))))
    (contexture-conversations--announce '(:session "work" :id "ses-3" :messages 2) "open-session")
    (should (equal told '((session-changed (:session "work" :session-id "ses-3"
                                            :method "open-session" :messages 2)))))))

(ert-deftest contexture-conversation-mode-line-follows-the-session ()
  (contexture-conversations-tests--with
    (contexture-conversation-mode-line-mode 1)
    (should-not contexture--connection) ; it starts no server
    (should-not (contexture-conversations-line--lighter))
    (contexture-request 'open-session '(:name "work"))
    (llm-ert-wait-for (equal (contexture-conversations-tests--lighter) " conv:idle"))
    (contexture-request 'add-message '(:content "hello"))
    (llm-ert-wait-for (string-match-p "\\` conv:[1-9]/96,000\\'"
                                             (contexture-conversations-tests--lighter)))
    (contexture-request 'add-message (list :content (apply #'concat (make-list 90000 " word"))))
    (llm-ert-wait-for (string-match-p "\\` conv:90,0[0-9][0-9]/96,000!\\'"
                                             (contexture-conversations-tests--lighter)))
    (should (eq 'contexture-conversation-warning
                (get-text-property 0 'face (cadr (contexture-conversations-line--lighter)))))
    (contexture-request 'delete-session '(:session "work"))
    (llm-ert-wait-for (null (contexture-conversations-line--lighter)))))

(ert-deftest contexture-conversation-mode-line-leaves-nothing-behind ()
  (contexture-conversations-tests--with
    (contexture-conversations-tests--fill "work" "a")
    (contexture-conversation-mode-line-mode 1)
    (llm-ert-wait-for (contexture-conversations-line--lighter))
    (contexture-test-settle)
    (should (equal (llm-ert-calls 'subscribe)
                   '((:topics ("context-changed" "checkpoint-created" "context-pruned"
                               "context-summarized" "session-changed")))))
    (contexture-conversation-mode-line-mode -1)
    (should-not contexture-notification-functions)
    (should-not contexture-connected-hook)
    (should-not contexture-disconnected-hook)
    (contexture-test-settle)
    (should (equal (car (last (llm-ert-calls 'subscribe))) '(:topics nil)))))

(ert-deftest contexture-conversation-map-is-behind-the-prefix ()
  (should (commandp (lookup-key contexture-command-map (kbd "n o"))))
  (map-keymap (lambda (_ command) (should (commandp command))) contexture-conversation-map))

(provide 'contexture-conversations-tests)
;;; contexture-conversations-tests.el ends here
