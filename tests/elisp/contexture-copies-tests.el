;;; contexture-copies-tests.el --- Tests of buffers without files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Copies of buffers without files, names of files in several projects, and
;; files that change on disk under unsaved edits.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-list)
(require 'contexture-marks)
(require 'contexture-sources)

(defmacro contexture-copies-test-in (name &rest body)
  "Run BODY in a new buffer called NAME, without a file."
  (declare (indent 1) (debug t))
  `(let ((buffer (get-buffer-create ,name)))
     (unwind-protect (with-current-buffer buffer ,@body)
       (when (buffer-live-p buffer) (kill-buffer buffer)))))

(defun contexture-copies-test-text ()
  "Return what a model would get."
  (plist-get (contexture--rendered (contexture-current-context)) :text))

(ert-deftest contexture-copies-have-a-source-and-a-date-and-replace-each-other ()
  (contexture-test-with-server
    (contexture-copies-test-in "*results*"
      (insert "first\n")
      (contexture-test-message "^Added \\*results\\*" (contexture-add-buffer))
      (should (string-match-p "(from \\*results\\*) \\[as of 2[0-9-]+ [0-9:]+ UTC\\]\n```[a-z]*\nfirst"
                              (contexture-copies-test-text)))
      (contexture-test-message "already there" (contexture-add-buffer))
      (insert "second\n")
      (contexture-test-message "replaces the earlier copy" (contexture-add-buffer))
      (let ((item (contexture-test-only-item)))
        (should (equal "first\nsecond\n" (plist-get item :content)))
        (should (equal "copy" (contexture-list--state item)))
        (should (contexture-list--dated-p item)))
      (push-mark (point-min) t t)
      (contexture-test-message "another item contains it" (contexture-add-region (point-min) 7))
      (should-not (string-match-p "first\\(.\\|\n\\)*first" (contexture-copies-test-text)))
      (dolist (format '(markdown xml org json))
        (let ((contexture-format format))
          (should (string-match-p "\\*results\\*\\(.\\|\n\\)*as.of" (contexture-copies-test-text)))))
      (contexture-test-message "^Undid" (contexture-undo))
      (contexture-test-message "^Undid" (contexture-undo))
      (should (equal "first\n" (plist-get (contexture-test-only-item) :content))))))

(ert-deftest contexture-copies-of-a-renamed-buffer-replace-each-other ()
  (contexture-test-with-state
    (setq contexture-add-to 'shared)
    (contexture-copies-test-in "*results*"
      (insert "first\n")
      (contexture-add-buffer)
      (rename-buffer "*mine*")
      (insert "second\n")
      (contexture-add-region (point-min) 4)
      (contexture-test-message "replaces the earlier copy" (contexture-add-buffer))
      (let ((names (lambda ()
                     (mapcar (lambda (item) (contexture-test-metadata item :buffer))
                             (contexture-test-items contexture--shared)))))
        (should-not (member '("*results*") (funcall names)))
        (contexture-test-message "^Undid" (contexture-undo))
        (should (member '("*results*") (funcall names)))
        (contexture-test-message "^Redid" (contexture-redo))
        ;; Another buffer has the former name now.
        (rename-buffer "*third*")
        (with-current-buffer (get-buffer-create "*mine*") (insert "of another buffer\n"))
        (unwind-protect
            (progn
              (contexture-add-buffer)
              (should (member '("*mine*") (funcall names)))
              (should (member '("*third*") (funcall names))))
          (kill-buffer "*mine*"))))))

(ert-deftest contexture-copies-are-free-of-what-controls-a-terminal ()
  (pcase-dolist (`(,written . ,plain)
                 '(("\e[01;31m\e[Kerror:\e[m\e[K x" . "error: x")
                   ("\e]0;title\aprompt$ ls" . "prompt$ ls")
                   ("\e]8;;http://x\e\\link\e]8;;\e\\ end" . "link end")
                   (" 10%\r 50%\r100%\ndone\n" . "100%\ndone\n")
                   ("one\r\ntwo\r\n" . "one\ntwo\n")
                   ("N\bNA\bA" . "NA")
                   ("\e(Bplain\e=" . "plain")
                   ("none at all\n" . "none at all\n")))
    (should (equal plain (contexture--plain-text written))))
  (let ((long (make-string 1000000 ?x)))
    (pcase-dolist (`(,written . ,plain)
                   `((,(concat long "\rabc\n") . "abc\n")
                     (,(concat "\e]8;;" long "\a" long) . ,long)
                     (,(concat "\e]" long) . ,long)
                     (,(concat "\eP" long "\e\\") . "")
                     (,(concat "\e[" (make-string 1000000 ?1) "m" long) . ,long)
                     (,(make-string 1000000 ?\r) . ,(make-string 1000000 ?\r))))
      (should (equal plain (contexture--plain-text written)))))
  (contexture-test-with-server
    (contexture-copies-test-in "*results*"
      (insert "\e[1mbold\e[0m\n")
      (contexture-test-message "^Added" (contexture-add-buffer))
      (should (equal "bold\n" (plist-get (contexture-test-only-item) :content))))))

(ert-deftest contexture-copies-can-follow-a-buffer-that-a-process-writes ()
  (contexture-test-with-server
    (contexture-copies-test-in "*output*"
      (insert "one\n")
      (contexture-test-message "^Added" (contexture-add-buffer))
      (contexture-test-message "^Following again"
        (contexture-keep-copy (contexture-test-only-item) t))
      (insert "two\n")
      (let ((item (contexture-test-only-item)))
        (should (equal "one\ntwo\n" (plist-get item :content)))
        (should (equal "current" (contexture-list--state item))))
      (should (string-match-p "\\[as of " (contexture-copies-test-text)))
      ;; What it only followed is no step of undo.
      (insert "three\n")
      (kill-buffer)
      (with-temp-buffer
        (let ((item (contexture-test-only-item "*output*")))
          (should (equal "one\ntwo\nthree\n" (plist-get item :content)))
          (should (equal '("its buffer was killed") (contexture-test-metadata item :stale))))))))

;;;; Names

(ert-deftest contexture-copies-one-name-never-means-two-files ()
  (contexture-test-with-state
    (let ((contexture-add-to 'project))
      (dolist (project '("api" "backend"))
        (make-directory (concat llm-ert-directory project "/.git") t)
        (contexture-test-file (concat project "/src/users.rs") (concat "// " project)))
      (make-directory (concat llm-ert-directory "api/sub/.git") t)
      (contexture-test-file "api/sub/src/users.rs" "// sub")
      (make-symbolic-link (concat llm-ert-directory "api")
                          (concat llm-ert-directory "link"))
      (contexture-test-visiting (concat llm-ert-directory "api/src/users.rs")
        (contexture-test-message "^Added src/users.rs to" (contexture-add-buffer))
        (contexture-test-message "^Added /.*backend/src/users.rs to"
          (contexture-add-file (concat llm-ert-directory "backend/src/users.rs")))
        (contexture-test-message "^Added .*sub/src/users.rs to"
          (contexture-add-file (concat llm-ert-directory "api/sub/src/users.rs")))
        (contexture-test-message "^Added src/users.rs to .*already there"
          (contexture-add-file (concat llm-ert-directory "link/src/users.rs")))
        (let* ((items (contexture-request
                       'list-items (contexture--context-params (contexture-current-context))))
               (places (mapcar (lambda (item)
                                 (contexture--place (plist-get item :metadata)))
                               items)))
          (should (= 3 (length (delete-dups (copy-sequence places)))))
          (dolist (format '(markdown xml org json))
            (let* ((contexture-format format)
                   (text (contexture-copies-test-text)))
              (dolist (place places)
                (should (string-match-p (concat "[ \"]" (regexp-quote place) "[\")]") text))))))))))

(ert-deftest contexture-copies-a-misspelt-context-shows-near-names ()
  (contexture-test-with-server
    (dolist (name '("notes" "drafts"))
      (contexture-request 'add-item (list :manager name :content "x")))
    (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) "ntes")))
      (contexture-test-user-error "No context is called ntes; did you mean notes\\?"
        (call-interactively #'contexture-switch)))
    (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) "entirely new"))
              ((symbol-function 'y-or-n-p) #'ignore))
      (contexture-test-user-error "No context was chosen"
        (call-interactively #'contexture-switch)))))

;;;; Overlaps

(ert-deftest contexture-copies-overlaps-are-sent-and-counted-once ()
  (contexture-test-with-server
    (let ((file (contexture-test-file "a.py" "def a():" "    x = 1" "    return x" "" "b = 2")))
      (contexture-test-visiting file
        (contexture-test-message "^Added" (contexture-add-defun))
        (goto-char (point-min))
        (contexture-test-message "contains it" (contexture-add-region 15 18)) ; a part of a line
        (should-not (string-match-p "x = 1\\(.\\|\n\\)*x = 1" (contexture-copies-test-text)))
        (contexture-test-message "2 other items are sent as a part of it" (contexture-add-buffer))
        (should-not (string-match-p "x = 1\\(.\\|\n\\)*x = 1" (contexture-copies-test-text)))
        (let ((items (contexture-request
                      'list-items (contexture--context-params (contexture-current-context)))))
          (should (= (contexture--tokens-to-send items)
                     (plist-get (car (last items)) :tokens))))))))

;;;; Long lines

(ert-deftest contexture-copies-a-long-line-is-shortened-in-the-preview-only ()
  (contexture-test-with-server
    (contexture-copies-test-in "*long*"
      (insert "short\n" (make-string 100000 ?x) "\nend\n")
      (contexture-test-message "^Added" (contexture-add-buffer))
      (save-window-excursion
        (contexture-preview (contexture-current-context))
        (with-current-buffer contexture-preview-buffer
          (should (< (buffer-size) 5000))
          (goto-char (point-min))
          (should (search-forward "\nshort\nxxx"))
          (should (search-forward "[… 96,000 more characters of this line are sent …]x"))
          (should (search-forward "x\nend\n"))))
      (should (string-search (make-string 100000 ?x) (contexture-copies-test-text))))))

;;;; Files that change under unsaved edits

(ert-deftest contexture-copies-a-file-that-changes-under-edits-is-a-conflict ()
  (contexture-test-with-server
    (let ((file (contexture-test-file "a.txt" "one"))
          compared)
      (contexture-test-visiting file
        (contexture-test-message "^Added" (contexture-add-buffer))
        (insert "mine ")
        (contexture-test-items)
        (should-not contexture--conflicts)
        (let ((time (time-add nil 5)))
          (write-region "theirs\n" nil file nil 'silent)
          (set-file-times file time))
        (contexture-test-message "a.txt changed on disk under your unsaved edits"
          (contexture-test-items))
        (let ((item (contexture-test-only-item)))
          (should (equal "changed" (contexture-list--state item)))
          (should (equal "mine one\n" (plist-get item :content)))
          (should (eq :stale (plist-get item :state))))
        (contexture-copy (contexture-current-context))
        (should (string-search "its file changed on disk under unsaved edits" (current-kill 0)))
        (should-not (contexture-live--unsaved file))
        (should (string-match-p "changed" (format "%s" (let ((contexture-mode t))
                                                          (contexture--lighter)))))
        (cl-letf (((symbol-function 'ediff-current-file)
                   (lambda () (setq compared (buffer-name)))))
          (contexture-ediff))
        (should (equal compared "a.txt"))
        (should (eq #'contexture-ediff (lookup-key contexture-list-mode-map "=")))
        (set-buffer-modified-p nil)
        (let ((revert-without-query '("."))) (revert-buffer t t))
        (contexture-test-items)
        (should-not contexture--conflicts)))))

(ert-deftest contexture-copies-however-an-agent-writes-a-file-under-edits-it-is-told ()
  "What is sent stays what the buffer shows, and is never said to be certain."
  (contexture-test-with-server
    (let ((number 0) (later (time-add nil 5)))
      (pcase-dolist
          (`(,way . ,write)
           `((appended . ,(lambda (file) (write-region "more\n" nil file t 'silent) (set-file-times file later)))
             (same-size . ,(lambda (file) (write-region "two\n" nil file nil 'silent) (set-file-times file later)))
             (emptied . ,(lambda (file) (write-region "" nil file nil 'silent) (set-file-times file later)))
             (renamed . ,(lambda (file)
                           (write-region "new\n" nil "new" nil 'silent)
                           (set-file-times "new" later)
                           (rename-file "new" file t)))
             (older . ,(lambda (file)
                         (write-region "old\n" nil file nil 'silent)
                         (set-file-times file (time-subtract nil 100000))))
             (binary . ,(lambda (file)
                          (let ((coding-system-for-write 'binary)) (write-region "\0\377" nil file nil 'silent))
                          (set-file-times file later)))
             (linked . ,(lambda (file)
                          (write-region "there\n" nil "there" nil 'silent)
                          (set-file-times "there" later)
                          (make-symbolic-link (expand-file-name "there") file t)))
             (deleted . ,#'delete-file)))
        (let ((file (contexture-test-file (format "f%d.txt" (cl-incf number)) "one")))
          (contexture-test-visiting file
            (contexture-test-message "^Added" (contexture-add-buffer))
            (contexture-test-message "^Added" (contexture-add-region 1 5))
            (goto-char (point-max))
            (insert "mine\n")
            (contexture-test-items)
            (contexture-test-message (if (eq way 'deleted) "is gone from the disk" "changed on disk")
              (funcall write file)
              (contexture-test-items))
            (dolist (item (contexture-test-items))
              (should (member (plist-get item :content) '("one\n" "one\nmine\n")))
              (should (equal (list way (plist-get item :state)) (list way :stale)))
              (should (member (contexture-list--state item) '("changed" "gone" "covered"))))
            (set-buffer-modified-p nil)))))))

(ert-deftest contexture-copies-a-conflict-is-told-where-it-matters ()
  "The mode line tells a conflict in the buffers whose context has its items."
  (contexture-test-with-server
    (setq contexture-add-to 'project)
    (dolist (name '("p1" "p2"))
      (contexture-test-file (concat name "/a.txt") "one" "two")
      (make-directory (concat llm-ert-directory name "/.git")))
    (let ((lighters (lambda ()
                      (mapcar (lambda (name)
                                (with-current-buffer (get-file-buffer
                                                      (concat llm-ert-directory name "/a.txt"))
                                  (mapconcat #'substring-no-properties
                                             (ensure-list (contexture--lighter)) "")))
                              '("p1" "p2")))))
      (contexture-test-visiting (concat llm-ert-directory "p2/a.txt")
        (contexture-mode 1)
        (contexture-test-message "^Added" (contexture-add-buffer))
        (contexture-test-visiting (concat llm-ert-directory "p1/a.txt")
          (contexture-mode 1)
          (contexture-test-message "^Added" (contexture-add-buffer))
          (contexture-test-message "^Added" (contexture-add-region 1 5))
          (goto-char (point-min))
          (insert "mine\n")
          (write-region "theirs\n" nil buffer-file-name nil 'silent)
          (set-file-times buffer-file-name (time-add nil 5))
          ;; Nobody asks for the items, but Emacs looks while it is idle.
          (cl-letf (((symbol-function 'current-idle-time) (lambda () '(0 1 0 0))))
            (contexture-test-message "a.txt changed on disk" (contexture-live--look)))
          (should (timerp contexture-live--next-look))
          (should (string-match-p "changed on disk" (car (funcall lighters))))
          (should-not (string-match-p "changed" (cadr (funcall lighters))))
          (set-buffer-modified-p nil)
          (let ((revert-without-query '("."))) (revert-buffer t t))
          (contexture-live--look)
          (should-not contexture-live--next-look)
          (should-not (string-match-p "on disk" (car (funcall lighters)))))))))

(provide 'contexture-copies-tests)
;;; contexture-copies-tests.el ends here
